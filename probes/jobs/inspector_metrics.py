"""The Prometheus text of the NCCL Inspector: one file per GPU, with the mean bus bandwidth of the last window.

The text has no ranks: a communicator is known by its name, its numbers of ranks and nodes, and the GPUs that have it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from ...models.jobs.log import JobLog, Member
from ...models.jobs.rates import seconds_at
from .inspector_lines import FULL, kind_of

_LINE = re.compile(r"(nccl_bus_bandwidth_gbs|nccl_p2p_bus_bandwidth_gbs)\{([^{}]{0,2000})\} ([-+.\deE]{1,30})(?: \d+)?")
_LABEL = re.compile(r'(\w{1,40})="((?:[^"\\]|\\.){0,256})"')
_OURS = re.compile(r"nccl_(?:p2p_|bus_|collective)|#|\s*$")
_RANGE = re.compile(r"(\d{1,4})-\d{1,4}(B|KB|MB|GB|TB)")
_UNITS = {unit: 1 << 10 * power for power, unit in enumerate(("B", "KB", "MB", "GB", "TB"))}
_UUID = re.compile(r"nccl_inspector_metrics_([\w-]{1,64})\.prom")
_MOST_RANKS = 1 << 20


def read_metrics(name: str, lines: Iterable[bytes], log: JobLog) -> None:
    """Add the text of one GPU, whose UUID is in the name of the file."""
    uuid = _UUID.search(name)
    process = uuid[1] if uuid else name
    log.averaged = True
    for raw in lines:
        line = raw.decode("utf-8", "replace")
        found = _LINE.fullmatch(line.rstrip())
        log.lines += 1
        if found is not None:
            _add(dict(_LABEL.findall(found[2])), float_of(found[3]), process, log)
        elif not _OURS.match(line):
            log.problems["damaged lines"] += 1


def float_of(text: str) -> float | None:
    """The number, if it is a positive one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1e6 else None


def _add(labels: Mapping[str, str], rate: float | None, process: str, log: JobLog) -> None:
    if "nranks" not in labels:
        log.problems["lines without a communicator"] += 1
        return
    ranks, nodes = (int(labels[key]) if labels.get(key, "").isdecimal() else 0 for key in ("nranks", "n_nodes"))
    size = _RANGE.fullmatch(labels.get("message_size", ""))
    algorithm, _, protocol = labels.get("algo_proto", "").rpartition("_")
    op = labels.get("collective", labels.get("p2p_operation", ""))
    if rate is None or size is None or not 2 <= ranks <= _MOST_RANKS or not int(size[1]):
        log.problems["operations with an impossible time, size or number"] += 1
        return
    kind = kind_of(op, algorithm, protocol, int(size[1]) * _UNITS[size[2]], -1)
    if kind is None:
        log.problems["operations of an unknown name"] += 1
        return
    log.seen_version(labels.get("version", ""))
    member = _member(labels, ranks, nodes, process, log)
    series = log.series_of(member, kind) if member else None
    if series is None:
        log.problems[FULL] += 1
    else:
        time = seconds_at(kind.op, ranks, kind.size, rate * 1e9) * 1e6
        if math.isfinite(time):
            series.add(0, time, log.depth)


def _member(labels: Mapping[str, str], ranks: int, nodes: int, process: str, log: JobLog) -> Member | None:
    job, name = labels.get("slurm_job_id", "unknown"), labels.get("comm_name", "unknown")
    if job != "unknown":
        log.seen_job(job)
    key = f"{name} of {ranks} ranks" + (f", job {job}" if job != "unknown" else "")
    found = log.communicator_of(key, ranks, nodes or None, name)
    known = next((one for one in found.members.values() if one.process == process), None) if found else None
    if found is None or known is not None:
        return known
    if len(found.members) == ranks:
        found.inconsistent = True  # several communicators of one name
    added = log.member_of(found, len(found.members), labels.get("node", "unknown"), process)
    if added is not None:
        added.gpu = labels.get("gpu")
    return added
