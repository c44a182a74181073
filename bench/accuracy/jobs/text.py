"""The files that the ranks of a synthetic job would write: one of JSON lines for each process, format v4.3 or v4.2."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from linkgauge.models.jobs.log import Communicator, JobLog, Kind, Member

_NAMES = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}
_STARTED = 1_748_030_377_000_000  # microseconds since 1970
_STEP = 1_000_000  # microseconds from dump to dump
BATCH = 8  # operations of a dump


def write_files(folder: Path, log: JobLog, version: str = "v4.3") -> None:
    """Write the operations of the log as the ranks would have written them."""
    files = defaultdict[str, list[str]](list)
    for one in log.communicators.values():
        for rank, member in one.members.items():
            name = f"{member.host}-pid{member.process.removeprefix('pid ')}.log"
            files[name] += (json.dumps(line) for line in _lines(one, rank, member, version))
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _lines(one: Communicator, rank: int, member: Member, version: str) -> Iterator[Mapping[str, Any]]:
    if not member.series:  # a pipeline
        context = _context(one, rank, member, version, _STARTED)
        record = _transfer((rank + 1) % one.n_ranks)
        if version == "v4.3":
            yield {**context, "dump_stats": {"coll_records": 0, "p2p_records": 1}}
        yield record if version == "v4.3" else {**context, **record}
    for kind, series in member.series.items():
        values = [_operation(kind, *each) for each in zip(series.numbers, series.times, strict=True)]
        for start in range(0, len(values), BATCH):
            context = _context(one, rank, member, version, _STARTED + _STEP * (start + BATCH))
            records = values[start : start + BATCH]
            if version == "v4.3":
                yield {**context, "dump_stats": {"coll_records": len(records), "p2p_records": 0}}
            yield from records if version == "v4.3" else ({**context, **record} for record in records)


def _context(one: Communicator, rank: int, member: Member, version: str, at: int) -> dict[str, Any]:
    return {
        "header": {"id": one.id, "comm_name": one.name, "rank": rank, "n_ranks": one.n_ranks, "nnodes": 1},
        "metadata": {
            "inspector_output_format_version": version,
            "git_rev": "",
            "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": at,
            "hostname": member.host,
            "pid": int(member.process.removeprefix("pid ")),
        },
    }


def _operation(kind: Kind, number: int, time: float) -> dict[str, Any]:
    return {
        "coll_perf": {
            "coll": _NAMES[kind.op],
            "coll_algo": kind.algorithm,
            "coll_proto": kind.protocol,
            "coll_sn": number,
            "coll_msg_size_bytes": kind.size,
            "coll_exec_time_us": int(time),
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 1.0,
            "coll_busbw_gbs": 1.0,
        }
    }


def _transfer(peer: int) -> dict[str, Any]:
    return {
        "p2p_perf": {
            "p2p": "Send",
            "p2p_sn": 0,
            "p2p_peer": peer,
            "p2p_msg_size_bytes": 1 << 24,
            "p2p_exec_time_us": 900,
            "p2p_timing_source": "kernel_gpu",
            "p2p_algobw_gbs": 18.6,
            "p2p_busbw_gbs": 18.6,
        }
    }
