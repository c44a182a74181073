"""Saved kernel logs: dmesg, journalctl, syslog, records of /dev/kmsg, single lines.

kernel_log/forms.py and the catalog of messages have the meaning of the lines, log_times.py the formats of their times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.gpu import Driver
from ....models.facts.machine import Node
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ...kernel_log.forms import FORMS
from ...kernel_log.patterns import contains_event
from ..core.part import Part
from . import log_times
from .log_events import BOOTED, LogLine, log_events, log_line, messages, time_ends, with_placeholders
from .log_times import LEVEL

_A = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
# Lines without a time: they begin with a driver and a device.
_DRIVERS = r"(?:pci|pcieport|pciehp|nvidia|mlx5_core|nvme|bnxt_en|ice|i40e|igb|ixgbe|amdgpu|vfio-pci|efa)"
_BARE = (
    r"(?:kernel: )?(?:NVRM: |nvidia-nvswitch[0-9]{1,3}: SXid \(|nvme nvme[0-9]{1,4}: |EDAC MC[0-9]{1,3}: |mce: |"
    r"aer_\w{1,30}: |"
    r"blk_update_request: |critical medium error, dev |EXT[34]-fs (?:error )?\(|XFS \(|BTRFS|"
    rf"Memory failure: 0x|CPU[0-9]{{1,5}}: (?:Core|Package) temperature |{_DRIVERS} {_A}(?: \S{{1,20}})?: )"
)
# BEGIN matches every line of a log.
BEGIN = rf"^[ \t]*{LEVEL}(?:{'|'.join(log_times.FORMS.values())}|{_BARE})"
LINES = True
_KERNEL = re.compile(r"Linux version (?P<release>[\w.+~-]{1,80}) ")
_MODULE = re.compile(
    r"NVRM: loading NVIDIA UNIX .{0,60}Kernel Module.{0,20}?\s(?P<version>[0-9]{3}(?:\.[0-9]{1,4}){1,2})\b"
)
_LOADED = "NVRM: loading NVIDIA"
_CUT_XID = re.compile(r"(?<!S)Xid \(PCI:[0-9a-f:.]{7,16}\): (?:[0-9]|1[0-7])?[ \t]*$")  # forms.py: 11 of 119
_NEEDLES = tuple(dict.fromkeys((*(form.needle for form in FORMS), BOOTED)))


def read(part: Part) -> Iterator[Record]:
    """The kernel and the driver, and one `Event` per group of equal messages, as in the live log."""
    lines = [
        log_line(number, whole)
        for number, whole in part.lines_with(_NEEDLES)
        if BOOTED in whole or _LOADED in whole or contains_event(whole)
    ]
    yield from _versions(part, lines)
    several = with_placeholders(part, [*lines, *messages(part)])
    yield from log_events(part, several, time_ends(part.text))
    yield from _cut(part)


def _cut(part: Part) -> Iterator[NotChecked]:
    """The first line that ends within the number of an Xid."""
    number = next((number for number, line in part.lines_with(("Xid (PCI:",)) if _CUT_XID.search(line)), None)
    if number is not None:
        why, how = "the line ends before or within the number of an Xid", "keep whole lines: dmesg | grep Xid"
        path = part.where(number)
        yield NotChecked(what="Event", subject="node", reason=Reason.INCOMPLETE, path=path, detail=why, how=how)


def _versions(part: Part, lines: list[LogLine]) -> Iterator[Record]:
    """The kernel and the driver that were loaded last."""
    kernel = driver = None
    for line in lines:
        if found := _KERNEL.match(line.text):
            kernel = Node(key="node", kernel=found["release"], cites={"kernel": part.cite(line.number, line.whole)})
        elif _LOADED in line.text and (found := _MODULE.search(line.text)):
            cites = {"version": part.cite(line.number, line.whole)}
            driver = Driver(key="nvidia", version=found["version"], cites=cites)
    yield from (one for one in (kernel, driver) if one)
