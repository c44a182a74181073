"""Lines of the kernel log that tell of links and devices: a table of forms, and the events that lines make.

Drivers write "DRIVER ADDRESS: text" (dev_printk). The forms, by who prints them: NVRM and nvidia-nvswitch (NVIDIA, Xid
Errors; Fabric Manager user guide), drivers/pci/pcie/aer.c and dpc.c, drivers/pci/pci.c (__pcie_print_link_status),
drivers/pci/hotplug/pciehp_ctrl.c, drivers/infiniband/core/cache.c, mlx5_core (health.c, events.c, en_main.c), bnxt,
ice, igb and kin, drivers/nvme/host, drivers/edac/edac_mc.c, mm/memory-failure.c, drivers/thermal/intel/therm_throt.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...models.facts.machine import Event
from ...models.facts.records import Evidence
from ...models.facts.units import from_gigabits

_HOUR = 3600.0  # seconds
LONGEST = 500  # characters of a line that are looked at and kept
_A = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
# Of an Xid: older drivers leave out "PCI:" or the domain, none has the function, MIG adds "GPU-I:05".
_XID = r"NVRM: Xid \((?:PCI:)?(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?(?: [^)]{1,40})?\): "
_MLX5, _NICS = rf"mlx5_core {_A}(?: \S{{1,20}})?: ", rf"(?:bnxt_en|ice|i40e) {_A}(?: \S{{1,20}})?: "


@dataclass(frozen=True, slots=True)
class Form:
    """A form of line: its kind, a text without which no line has it, and the pattern whose groups fill an Event."""

    kind: str
    needle: str
    pattern: re.Pattern[str]


def _forms(*rows: tuple[str, str, str]) -> tuple[Form, ...]:
    return tuple(Form(kind, needle, re.compile(pattern)) for kind, needle, pattern in rows)


# Groups: address, subject and name are texts; code, link and count are numbers; action is one in base 16; rate and able
# are in Gb/s; fatal is a word of the line, or nothing where the form itself is fatal. A line is of the first form that
# fits.
FORMS = _forms(
    # What to do changed: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and reset (nvml.h). The words
    # behind the number differ between drivers.
    ("recovery", ": 154, ", _XID + r".{0,80}GPU recovery action changed from .{1,40} to 0x(?P<action>[0-9a-f]{1,2})\b"),
    # NVLink 5: which part, whether fatal, whether contained, whether injected, which link (-1: none), registers.
    # The driver fills the columns up with spaces; some name the process first.
    (
        "xid",
        "NVRM: Xid (",
        _XID + r"(?P<code>14[4-9]|150), (?:pid=[^,]{1,20}, )?(?:name=[^,]{1,40}, )?\S{1,40} {1,20}"
        r"(?P<fatal>Fatal|Non-?fatal) {1,9}\S{1,9} {1,9}\S{1,9} {1,9}Link (?P<link>-?[0-9]{1,3})\b",
    ),
    ("xid", "NVRM: Xid (", _XID + r"(?P<code>74), .{0,120}\blink (?P<link>[0-9]{1,3})\b"),
    ("xid", "NVRM: Xid (", _XID + r"(?P<code>[0-9]{1,4})\b"),
    # Each SXid comes as three lines: what it is, its severity and place, its registers.
    (
        "sxid",
        ": SXid (",
        rf"nvidia-nvswitch[0-9]{{1,3}}: SXid \(PCI:{_A}\): (?P<code>[0-9]{{5}}), (?!Data|Severity)"
        r"(?:(?P<fatal>Fatal|Non-fatal), Link (?P<link>[0-9]{1,3})\b)?",
    ),
    ("driver loaded", "NVRM: loading NVIDIA", r"NVRM: loading (?P<subject>NVIDIA) UNIX .{0,40}Kernel Module"),
    ("reset", ": reset done", _A + r": reset done$"),
    ("gpu init failed", "RmInitAdapter", rf"NVRM: GPU {_A}: RmInitAdapter failed"),
    ("gpu init failed", "NVRM: The NVIDIA", rf"NVRM: The NVIDIA (?:probe routine|GPU {_A})"),
    # The end of a message of three lines, of which the first names the GPU.
    ("gpu fell off", "NVRM: fallen", r"(?P<subject>NVRM): fallen off the bus"),
    ("gpu init failed", "NVRM: API mismatch", r"(?P<subject>NVRM): API mismatch: "),
    ("gpu init failed", "NVRM: No", r"(?P<subject>NVRM): (?:No NVIDIA |None of the NVIDIA )"),
    (
        "gpu init failed",
        "failed with error",
        rf"nvidia(?:: probe of {_A}| {_A.replace('address', 'address2')}: probe "
        r"with driver nvidia) failed with error",
    ),
    # The line before it, "error received", names the port that heard of it and tells no more. Named Correctable and
    # Uncorrectable since Linux 6.14.
    ("aer corrected", "PCIe Bus Error", _A + r": (?:AER: )?PCIe Bus Error: severity=Correct"),
    (
        "aer",
        "PCIe Bus Error",
        _A + r": (?:AER: )?PCIe Bus Error: severity=Uncorrect[a-z]{2,4} "
        r"\((?P<fatal>Fatal|Non-Fatal)\)",
    ),
    ("aer", "aer_uncor_severity", _A + r": (?:AER: )?aer_uncor_severity: "),  # where firmware has the errors first
    ("surprise down", "[ 5]", _A + r": (?:AER: )? {0,8}\[ 5\] S(?:urprise Down|DES)(?P<fatal>)"),
    ("surprise down", "ontainment event", _A + r"(?::pcie[0-9a-f]{2,3})?: (?:DPC: |DPC )containment event(?P<fatal>)"),
    (
        "surprise down",
        "lot(",
        _A + r"(?::pcie[0-9a-f]{2,3})?: (?:pciehp: )?[Ss]lot\([^)]{1,20}\): "
        r"(?:Link Down|Card not present)",
    ),
    (
        "pcie limited",
        "limited by",
        _A + r": (?P<rate>[0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/s available PCIe bandwidth, "
        rf"limited by [0-9.]{{1,6}} GT/s (?:PCIe )?x[0-9]{{1,2}} link at {_A.replace('address', 'port')} "
        r"\(capable of (?P<able>[0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/s",
    ),
    (
        "nic",
        "mlx5_core ",
        _MLX5 + r".{0,60}(?:Health issue observed|device's health compromised|assert_var\[0\]|"
        r"timeout\. Will cause a leak of a command|[Hh]igh temperature on sensors)",
    ),
    ("module", "Port module event[error]", _MLX5 + r".{0,60}Port module event\[error\]: module (?P<link>[0-9]{1,3}), "),
    ("nic", "irmware", _NICS + r".{0,60}(?:[Ff]irmware (?:is )?(?:not responding|non-responsive|recovery mode))"),
    ("nic", "failed", _NICS + r"(?:PF reset failed|Rebuild failed)"),
    ("link down", "Link DOWN", _A + r" (?P<name>\S{1,40}): Port: (?P<link>[0-9]{1,3}) Link DOWN"),
    ("link down", "own", _A + r" (?P<name>\S{1,40}): (?:igb: \S{1,20} )?(?:NIC )?Link (?:is )?[Dd]own\b"),
    (
        "nvme gone",
        "nvme nvme",
        r"nvme (?P<subject>nvme[0-9]{1,4}): (?:Removing after probe failure|Device not ready|"
        r"Disabling device after reset failure|[Rr]emoving after reset failure)",
    ),
    (
        "nvme",
        "nvme nvme",
        r"nvme (?P<subject>nvme[0-9]{1,4}): (?:I/O .{1,80}timeout, (?:abort|reset|disable)|"
        r"controller is down; will reset)",
    ),
    ("edac", "EDAC MC", r"EDAC MC(?P<memory>[0-9]{1,3}): (?P<count>[0-9]{1,9}) (?P<fatal>CE|UE) "),
    ("edac", "ncorrected hardware memory error", r"mce: (?P<fatal>Uncorrected) hardware memory error"),
    ("edac", "Memory failure: ", r"(?P<fatal>Memory failure): 0x[0-9a-f]{1,16}: recovery action for "),
    ("throttle", "above threshold", r"CPU(?P<cpu>[0-9]{1,5}): (?:Package|Core) temperature above threshold"),
)
_MILD = ("Non-fatal", "Nonfatal", "Non-Fatal", "CE")


def may_tell(line: str) -> bool:
    """Whether a line with its time is an event: what does not is not looked at further."""
    line = line[: 2 * LONGEST]
    return any(form.needle in line and form.pattern.search(line) for form in FORMS)


def event_of(text: str) -> Event | None:
    """What a line says, without its time; None for a line that says nothing of links and devices."""
    text = text[:LONGEST]
    for form in FORMS:
        if form.needle in text and (found := form.pattern.search(text)):
            return _event(form.kind, text, found.groupdict())
    return None


def _event(kind: str, text: str, said: Mapping[str, str | None]) -> Event:
    """The event of a line; its key is yet to be made."""
    fatal, link = said.get("fatal"), _number(said.get("link"))
    action = said.get("action")
    address = said.get("address") or said.get("address2")
    if address and address.count(":") == 1:
        address = f"0000:{address}"
    if address and "." not in address:
        address = f"{address}.0"
    return Event(
        key="",
        kind=kind,
        code=int(action, 16) if action else _number(said.get("code")),
        subject=address or _named(said),
        text=text,
        fatal=None if fatal is None else fatal not in _MILD,
        link=link if link is None or link >= 0 else None,
        count=_number(said.get("count")) or 1,
        name=said.get("name"),
        port=said.get("port"),
        rate=_rate(said.get("rate")),
        able=_rate(said.get("able")),
    )


def _named(said: Mapping[str, str | None]) -> str:
    """The kernel's name of what has no PCI address."""
    if (controller := said.get("memory")) is not None:
        return f"mc{int(controller)}"
    if (cpu := said.get("cpu")) is not None:
        return f"cpu{int(cpu)}"
    subject = said.get("subject") or "node"
    return "nvidia" if subject in ("NVRM", "NVIDIA") else subject


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _rate(gigabits: str | None) -> float | None:
    return from_gigabits(float(gigabits)) if gigabits else None


@dataclass(slots=True)
class _Series:
    """Equal events: the last one, and when each came, as which number of them."""

    last: Event
    at: float
    times: list[tuple[float, int]] = field(default_factory=list)


def fold(lines: Iterable[tuple[float, str]], source: str) -> Iterator[Event]:
    """The events that the lines make, each with its time, equal ones as one: a storm of 50,000 lines is one event.

    Events in the order in which they came up. `source` is what the lines are cited from.
    """
    series: dict[tuple[Any, ...], _Series] = {}
    for at, text in lines:
        if event := event_of(text):
            same = series.setdefault(_identity(event), _Series(event, at))
            if at >= same.at:
                same.last, same.at = event, at
            same.times.append((at, event.count or 1))
    for identity, same in series.items():
        yield replace(
            same.last,
            key=" ".join(str(part) for part in identity if part is not None),
            at=same.at,
            count=sum(count for _, count in same.times),
            first=min(at for at, _ in same.times),
            recent=sum(count for at, count in same.times if at >= same.at - _HOUR),
            cites={"text": Evidence(source, same.last.text or "")},
        )


def joined(earlier: Iterable[Event], later: Iterable[Event]) -> Iterator[Event]:
    """The events of a log whose two parts were read one by one."""
    events = {event.key: event for event in earlier}
    for event in later:
        before = events.get(event.key)
        events[event.key] = event if before is None else _sum(before, event)
    yield from events.values()


def _sum(before: Event, after: Event) -> Event:
    near = (before.first or 0) >= (after.at or 0) - _HOUR
    return replace(
        after,
        count=(before.count or 1) + (after.count or 1),
        first=before.first,
        recent=(after.recent or 1) + (before.recent or 1 if near else 0),
    )


def _identity(event: Event) -> tuple[Any, ...]:
    """What makes two events equal; in its text it is their key."""
    grade = {True: "fatal", False: "mild", None: None}[event.fatal]
    link = None if event.link is None else f"link{event.link}"
    return (event.kind, event.code, event.subject, event.name, link, grade, event.port)
