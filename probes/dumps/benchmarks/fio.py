"""Results of fio, as JSON (--output-format=json) and as text: https://fio.readthedocs.io, Interpreting the output.

Jobs of one group run at the same time, so their rates on one device add up. The block size is the message size. Small
blocks do not show the rate of a link.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import GIB, KIB, MIB, prefixed
from ..core.json_values import each_document, number, object_of, objects
from ..core.part import Part, transfer

BEGIN = (
    r"^(?:[ \t]{0,8}\{\s{0,20}\"fio version\"[ ]{0,2}:|\w[^\n:]{0,80}: \(g=\d{1,4}\): rw=\w{1,20}, bs="
    r"|Run status group \d{1,4} \(all jobs\):"
    r"|fio: this platform does not support |note: both iodepth >= 1 and synch)"
)
ANY_LINE = r"^[ ]{0,4}(?:READ|WRITE): (?:bw=[0-9.]+[KMGT]?i?B/s \([0-9.]+[kMGT]?B/s\), |io=\S{1,20}, aggrb=)"
_WHOLE = re.compile(r"^[ \t]*\{\s{0,20}\"fio version\"", re.MULTILINE)  # messages can precede it
_OBJECT = re.compile(r"\{")
_JOB = re.compile(
    r"\S.*?: \(g=(\d{1,4})\): rw=\w+, bs=(?:\(R\) )?(\d{1,6})([KMG]i?)?B?-(?:.*ioengine=(?P<engine>\w+))?"
)
_GROUP = re.compile(r"Run status group (\d{1,4}) \(all jobs\):\s*")
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{0,11})?|\.[0-9]{1,11}"
_RATE = re.compile(  # fio 3, or fio 2, which writes KB for KiB
    rf"\s*(READ|WRITE): (?:bw=[0-9.]{{1,12}}[KMGT]?i?B/s \(({_NUMBER})([kMGT]?)B/s\)"
    rf"|io=[^,]{{1,40}}, aggrb=({_NUMBER})([KMGT]?)B/s).*"
)
_DISK = re.compile(r"\s*([a-z][a-z0-9]{1,30}): ios=(\d{1,18})/(\d{1,18})(?!\d).*")
_NO_DISK = ("null", "mmap")
_UNITS, _OLD_UNITS = prefixed(""), prefixed("", step=KIB)
_SIZES = {"k": KIB, "m": MIB, "g": GIB}


_WHAT, _MOST = "rate of a disk", 1e15  # bytes per second
_Rates: TypeAlias = list[tuple[str, float, Evidence]]  # direction, bytes per second, line


def read(part: Part) -> Iterator[Record]:
    """The read and write rates of devices. Runs that do not name the device have no rates."""
    yield from each_document(part, _OBJECT, _run) if _WHOLE.search(part.text) else _read_text(part)


def _run(part: Part, run: Any, where: str) -> Iterator[Observation | NotChecked]:
    """The rate of a device for each group of jobs, block size and direction."""
    used = objects(object_of(run).get("disk_util"))
    # The output also lists the members of an array, whose sums are in aggr_* fields of the array (fio, stat.c:
    # aggr_util).
    used = [one for one in used if "aggr_read_ios" in one] or used
    idle = bool(used) and all(one.get("read_ios") == 0 == one.get("write_ios") for one in used)
    sums: dict[tuple[int, str, int | None], dict[str, float]] = defaultdict(lambda: {"read": 0.0, "write": 0.0})
    cached = idle
    for job in objects(run.get("jobs")):
        options = {**object_of(run.get("global options")), **object_of(job.get("job options"))}
        cached = cached or not _uses_device(options)
        device, group = _device(options.get("filename"), [one.get("name") for one in used]), job.get("groupid")
        if device and isinstance(group, int) and _uses_device(options) and not idle:
            for side in ("read", "write"):
                sums[group, device, _size(_blocks(options))][side] += _rate(object_of(job.get(side)))
    if cached:
        yield _cached(part, where)
    for (group, device, size), rates in sums.items():
        for side, rate in rates.items():
            if rate:
                text = f"group {group}, {device}, {side}: {rate:.0f} bytes/s"
                flow = transfer(side, "host", device, size, all(rates.values()))
                yield part.rate(flow, rate, Evidence(where, text))


def _cached(part: Part, where: str) -> NotChecked:
    why = "jobs with direct=0 or ioengine=null or mmap, and jobs without I/O of the disk, do not show its rate"
    how = "run fio with direct=1 and ioengine=libaio or io_uring"
    return part.gap(where, why, _WHAT, Reason.NOT_MEASURED, how)


def _blocks(options: Mapping[str, Any]) -> object:
    """The block size. fio's default is 4 KiB (fio(1), blocksize); with bsrange or bssplit there are several."""
    several = {"bsrange", "blocksize_range", "bssplit"} & options.keys()
    return None if several else options.get("bs", options.get("blocksize", "4k"))


def _uses_device(options: Mapping[str, Any]) -> bool:
    """Whether the bytes come from the device, not from the page cache or from nowhere."""
    return str(options.get("direct", "1")) != "0" and options.get("ioengine") not in _NO_DISK


def _rate(side: Mapping[str, Any]) -> float:
    """Bytes per second; fio 2 has KiB/s only."""
    exact, rough = number(side.get("bw_bytes"), _MOST), number(side.get("bw"), _MOST / KIB)
    return exact if exact is not None else (rough or 0.0) * KIB


def _device(filename: object, disks: list[object]) -> str | None:
    """The block device in the job's file name, else the only device with I/O."""
    named = re.fullmatch(r"/dev/([a-z][a-z0-9]{1,30})", filename) if isinstance(filename, str) else None
    if named:
        return named[1]
    only = disks[0] if len(disks) == 1 else None
    return only if isinstance(only, str) and re.fullmatch(r"[a-z][a-z0-9]{1,30}", only) else None


def _size(text: object) -> int | None:
    """ "4096", "4k", "1M"; None for ranges and lists."""
    found = re.fullmatch(r"([0-9]{1,9})([kmg]?)(?:i?b)?", text.lower()) if isinstance(text, str) else None
    return int(found[1]) * _SIZES.get(found[2], 1) or None if found else None


def _read_text(part: Part) -> Iterator[Observation | NotChecked]:
    """Read the sums of each group. The list of devices follows all groups."""
    found = [disk for _, line in part.lines() if (disk := _DISK.fullmatch(line))]
    disks = {disk[1] for disk in found if int(disk[2]) + int(disk[3])}
    cached = bool(found) and not disks  # without I/O of the disk, the bytes came from the page cache
    sizes: dict[str, int | None] = {}
    group, seen = "", dict[str, _Rates]()
    for line_number, line in part.lines():
        if job := _JOB.match(line):
            size = _size(f"{job[2]}{(job[3] or '')[:1]}")
            cached = cached or job["engine"] in _NO_DISK
            sizes[job[1]] = size if sizes.get(job[1], size) == size else None
        elif begun := _GROUP.fullmatch(line):
            if begun[1] in seen:  # the same output again
                yield from _of_groups(part, None if cached else disks, sizes, seen)
                seen = {}
            group = begun[1]
        elif rate := _RATE.fullmatch(line):
            value = float(rate[2]) * _UNITS[rate[3]] if rate[2] else float(rate[4]) * _OLD_UNITS[rate[5]]
            seen.setdefault(group, []).append((rate[1].lower(), value, part.cite(line_number, line)))
    yield from _of_groups(part, None if cached else disks, sizes, seen)


def _of_groups(
    part: Part, disks: Collection[str] | None, sizes: Mapping[str, int | None], seen: Mapping[str, _Rates]
) -> Iterator[Observation | NotChecked]:
    """The rates of the only device; disks=None: the bytes came from no disk.

    Without the line of the job, the block size is not known, and small blocks do not show the rate of a link.
    """
    for group, rates in seen.items():
        twice = len({side for side, _, _ in rates}) < len(rates)  # the line of the next group is missing
        unknown = twice or group not in sizes
        if disks is None:
            yield _cached(part, rates[0][2].source)
        elif unknown or len(disks) != 1:
            lacks = "the lines of their job and group" if unknown else "the name of their only device"
            why = f"rates of fio without {lacks}"
            yield part.gap(rates[0][2].source, why, _WHAT, how="keep the whole output of fio")
        else:
            for side, value, cite in rates:
                flow = transfer(side, "host", next(iter(disks)), sizes[group], len(rates) > 1)
                yield part.rate(flow, value, cite)
