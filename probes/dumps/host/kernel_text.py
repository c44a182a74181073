"""Saved kernel logs: dmesg, journalctl, syslog, records of /dev/kmsg, single lines.

kernel_log/patterns.py has the meaning of the lines, log_times.py the formats of their times.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....models.facts.gpu import Driver
from ....models.facts.machine import Event, Node
from ....models.facts.records import Record
from ...kernel_log.patterns import FORMS, LONGEST, contains_event, group_events
from ..core.part import Part
from . import log_times
from .log_times import LEVEL, head

_A = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
# Lines without a time: they begin with a driver and a device.
_DRIVERS = r"(?:pci|pcieport|pciehp|nvidia|mlx5_core|nvme|bnxt_en|ice|i40e|igb|ixgbe|amdgpu|vfio-pci|efa)"
_BARE = (
    r"(?:kernel: )?(?:NVRM: |nvidia-nvswitch[0-9]{1,3}: SXid \(|nvme nvme[0-9]{1,4}: |EDAC MC[0-9]{1,3}: |mce: |"
    r"blk_update_request: |critical medium error, dev |EXT[34]-fs (?:error )?\(|XFS \(|BTRFS|"
    rf"Memory failure: 0x|CPU[0-9]{{1,5}}: (?:Core|Package) temperature |{_DRIVERS} {_A}(?: \S{{1,20}})?: )"
)
# BEGIN matches every line of a log.
BEGIN = rf"^[ \t]*{LEVEL}(?:{'|'.join(log_times.FORMS.values())}|{_BARE})"
LINES = True
_YEAR = 366 * 86400.0  # period of the clock without a year
_EDGE, _MOST = 40, 1 << 16  # lines at each end in which the reader searches for a time, and the characters of each end
_KERNEL = re.compile(r"Linux version (?P<release>[\w.+~-]{1,80}) ")
_MODULE = re.compile(
    r"NVRM: loading NVIDIA UNIX .{0,60}Kernel Module.{0,20}?\s(?P<version>[0-9]{3}(?:\.[0-9]{1,4}){1,2})\b"
)
_BOOTED, _LOADED = "Linux version ", "NVRM: loading NVIDIA"
_NEEDLES = tuple(dict.fromkeys((*(form.needle for form in FORMS), _BOOTED)))


@dataclass(frozen=True, slots=True)
class _Line:
    number: int  # in its part, from 0
    whole: str
    clock: str
    at: float | None
    text: str  # the message


def read(part: Part) -> Iterator[Record]:
    """The kernel and the driver, and one `Event` per group of equal messages, as in the live log."""
    lines = [
        _line(number, whole)
        for number, whole in part.lines_with(_NEEDLES)
        if _BOOTED in whole or _LOADED in whole or contains_event(whole)
    ]
    yield from _versions(part, lines)
    clocks: dict[str, list[_Line]] = defaultdict(list)
    for line in lines:
        clocks[line.clock].append(line)
    ends = _ends(part.text)
    for clock, found in clocks.items():
        yield from _events(part, found, ends.get(clock))


def _line(number: int, whole: str) -> _Line:
    clock, at, text = head(whole)
    return _Line(number, whole, clock, at, text)


def _ends(text: str) -> Mapping[str, tuple[float, float]]:
    """The first and the last time of each clock in the log."""
    edges = text if len(text) <= 2 * _MOST else f"{text[:_MOST]}\n{text[-_MOST:]}"
    lines = [line for line in edges.split("\n") if line]
    ends: dict[str, tuple[float, float]] = {}
    for line in lines if len(lines) <= 2 * _EDGE else (*lines[:_EDGE], *lines[-_EDGE:]):
        clock, at, _ = head(line)
        if at is not None:
            ends[clock] = (ends[clock][0] if clock in ends else at, at)
    return ends


def _events(part: Part, lines: list[_Line], ends: tuple[float, float] | None) -> Iterator[Event]:
    """The events of the lines of one clock. Without times, their order and distance are unknown."""
    clock = lines[0].clock
    if clock == "boot":
        lines = _last_boot(lines)
    near = ends[1] if ends else 0.0
    timed = [(_moment(clock, line.at or 0.0, near), line.text) for line in lines]
    cites = {
        line.text[:LONGEST]: line for _, line in sorted(zip(timed, lines, strict=True), key=lambda pair: pair[0][0])
    }
    shown_times = [near] if clock == "boot" else [_moment(clock, end, near) for end in ends or ()]
    until = max((*shown_times, *(at for at, _ in timed)), default=0.0)
    origin = 0.0 if clock in ("boot", "zoned") else min((at for at, _ in timed), default=0.0)
    for event in group_events(timed, part.file):
        line = cites[event.text or ""]
        cited = replace(event, cites={"text": part.cite(line.number, line.whole)})
        if ends is None:
            yield replace(cited, at=None, first=None, recent=None, bursts=None)
        else:
            at, first = (event.at or 0.0) - origin, (event.first or 0.0) - origin
            yield replace(cited, at=at, first=first, until=until - origin)


def _moment(clock: str, at: float, near: float) -> float:
    """For the clock without a year: the time in the year that brings it nearest to the end of the log."""
    return near + (at - near + _YEAR / 2) % _YEAR - _YEAR / 2 if clock == "yearless" else at


def _last_boot(lines: list[_Line]) -> list[_Line]:
    """The lines since the last boot. The clock restarts at each boot."""
    starts = [place for place, line in enumerate(lines) if line.text.startswith(_BOOTED)]
    return lines[starts[-1] :] if starts else lines


def _versions(part: Part, lines: list[_Line]) -> Iterator[Record]:
    """The kernel and the driver that were loaded last."""
    kernel = driver = None
    for line in lines:
        if found := _KERNEL.match(line.text):
            kernel = Node(key="node", kernel=found["release"], cites={"kernel": part.cite(line.number, line.whole)})
        elif _LOADED in line.text and (found := _MODULE.search(line.text)):
            cites = {"version": part.cite(line.number, line.whole)}
            driver = Driver(key="nvidia", version=found["version"], cites=cites)
    yield from (one for one in (kernel, driver) if one)
