"""Kernel log events of PCIe links: bus errors, links that went down, links slower than the device below them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...facts.machine import Event, Node, Pci
from ...facts.records import NotChecked
from ...facts.units import as_gigabytes
from ...inventory.snapshot import Snapshot
from ...report import COHORT, SEVERITIES, Finding, Severity
from ..core.log_history import event_evidence, events, has_events, is_history, is_later, since, times
from ..core.rule import Rule
from ..core.wording import function_name, location
from ..pcie.left_out_events import left_out, with_left_out
from .missing import off_the_bus

_DETAILS = ("aer", "aer corrected")
_PARTS = ("aer corrected detail", "aer detail")  # names of errors
_NAME = r"\[[ 0-9][0-9]\] (\w+)"
_RECEIVED = "aer received"
_KINDS = (*_DETAILS, _RECEIVED, *_PARTS, "surprise down", "aer suppressed")
# The limit of the counters (pcie.py): 8 a minute on 16 lanes (DCGM's health watch).
_CORRECTABLE = 8 * 60 / 16  # per hour and lane
_MANY = 60  # errors in a log of less than an hour: fewer may be a single burst
_STORM = 3  # messages of a text about "Multiple" errors: more arrived before the first was read (pci/pcie/aer.c)
_HOUR = 3600.0
_DOWNS = 6  # lines in an hour of a link that came up again; the kernel logs up to two lines each time
_SOON = 60.0  # seconds between a link that goes down and the driver that notices
# NICs and GPUs use the rate of their whole link. Other devices often have more lanes than they need. The PCI core does
# not name the device: of those with 16 lanes, most are GPUs and NICs, and a slot with eight is usual.
_LANES_OF_FAST = re.compile(
    r"\b(?:(?:mlx[45]_core|bnxt_en|ice|nvidia|amdgpu)\b.*limited by .* x(?P<got>\d{1,2}) link at .*"
    r"\(capable of .* x(?P<of>\d{1,2}) link\)|pci\b.*limited by .* x[124] link at .*\(capable of .* x16 link\))"
)


def any_logged(*kinds: str) -> Callable[[Snapshot, Node], bool]:
    """A rule's `where`: the log has an event of these kinds."""

    def where(snapshot: Snapshot, node: Node) -> bool:
        return has_events(snapshot, *kinds)

    return where


def errors(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """Bus errors in the log, for functions without readable counters. The counters would count the same errors."""
    for subject, found in _by_subject(snapshot).items():
        if any(one.quantity.startswith("aer_") for one in snapshot.observed.get(subject, ())):
            found = [one for one in found if one.kind == "surprise down"]  # no counter of the port counts these
        if not found or _explained(snapshot, subject, found):
            continue
        graded = [(severity, one) for one in found if (severity := _severity(snapshot, one))]
        graded.sort(key=lambda pair: (SEVERITIES.index(pair[0]), -(pair[1].at or 0.0)))
        if graded:
            yield _error(snapshot, subject, *graded[0], [one for _, one in graded])
            if graded[0][0] == "info" and not is_history(snapshot, graded[0][1]):
                yield from left_out(snapshot, subject)


def _by_subject(snapshot: Snapshot) -> Mapping[str, list[Event]]:
    """The events of each device. The port that receives a message logs it, too. This line counts if the lines with the
    details are missing, and a line with the name of an error if both are missing.
    """
    subjects: dict[str, list[Event]] = defaultdict(list)
    counting = next((kinds for kinds in (_DETAILS, (_RECEIVED,)) if has_events(snapshot, *kinds)), _PARTS)
    for event in events(snapshot, *counting, "surprise down"):
        if event.kind in (_RECEIVED, *_PARTS):
            corrected = event.kind == _PARTS[0] or (event.kind == _RECEIVED and event.fatal is None)
            event = replace(event, kind="aer corrected" if corrected else "aer")
        if event.subject:
            subjects[event.subject].append(event)
    return with_left_out(snapshot, subjects)


def _severity(snapshot: Snapshot, event: Event) -> Severity | None:
    """The severity. None: no fault (the link came up again and stays up, or there are few correctable errors)."""
    severity: Severity = "warning"
    if event.kind == "aer":
        severity = "critical" if event.fatal else "warning"
    elif event.kind == "aer corrected":
        rate = _rate(event) if snapshot.origin == "dumps" else event.recent or 1
        if rate <= _harmless(snapshot, event) and not _is_storm(snapshot, event):
            return "info" if snapshot.origin == "dumps" else None  # an excerpt of a log may lack most of the errors
    elif _unseen(snapshot, event.subject):
        severity = "warning"  # only the log shows the port
    elif not _empty(snapshot, event.subject):
        if event.subject not in snapshot.of(Pci) or not _comes_and_goes(event):
            return None
    elif event.fatal is None:
        severity = "info"  # the removal of a disk looks the same
    return "info" if is_history(snapshot, event) else severity


def _comes_and_goes(event: Event) -> bool:
    """Whether the link went down again and again. Containment (DPC) is an error; a slot may also be switched off."""
    return (event.bursts or 1) > 1 if event.fatal else (event.recent or 1) >= _DOWNS


def _harmless(snapshot: Snapshot, event: Event) -> float:
    """The number of correctable errors in an hour that costs no bandwidth."""
    function = snapshot.of(Pci).get(event.subject or "")
    return _CORRECTABLE * (function and function.width or 16)


def _rate(event: Event) -> float:
    """Errors per hour. Many errors within less than an hour are extrapolated from the first and the last of them.

    Of a text without times, the number of errors decides.
    """
    recent = event.recent if event.recent is not None else event.count or 1
    span = (event.at or 0.0) - (event.first or event.at or 0.0)
    many = recent >= _MANY and recent == event.count and span >= _SOON
    return recent * _HOUR / min(span, _HOUR) if many else recent


def _is_storm(snapshot: Snapshot, event: Event) -> bool:
    """Whether a text says each minute that errors of the device came faster than the kernel reads them."""
    several = [one for one in events(snapshot, _RECEIVED) if one.subject == event.subject and one.fatal is None]
    many = next((one for one in several if one.name), None)
    if many is None or snapshot.origin != "dumps" or is_history(snapshot, event):
        return False
    span = (many.at or 0.0) - (many.first or many.at or 0.0)
    return (many.count or 1) >= max(_STORM, span / _SOON)


def _unseen(snapshot: Snapshot, port: str | None) -> bool:
    """Whether a text names a port of a PCI tree that is not in the text."""
    return snapshot.origin == "dumps" and port not in snapshot.of(Pci)


def _empty(snapshot: Snapshot, port: str | None) -> bool:
    """Whether the port has no function below it any more."""
    functions = snapshot.of(Pci)
    return port in functions and not any(function.parent == port for function in functions.values())


def _explained(snapshot: Snapshot, port: str, found: list[Event]) -> bool:
    """Whether another finding names the lost device: a function that does not answer, or a GPU off the bus."""
    if any(function.lost and port in (function.key, function.parent) for function in snapshot.of(Pci).values()):
        return True
    ends = [xid.first if xid.first is not None else xid.at for xid in off_the_bus(snapshot).values()]
    moments = [one.at for one in found if one.at is not None]
    return _empty(snapshot, port) and any(
        end is not None and abs(end - moment) <= _SOON for end in ends for moment in moments
    )


def _error(snapshot: Snapshot, subject: str, severity: Severity, event: Event, found: list[Event]) -> Finding:
    function = snapshot.of(Pci).get(subject)
    name = function_name(snapshot, function) if function else subject
    kind = {"aer corrected": "correctable bus errors", "surprise down": "the link below it went down by surprise"}.get(
        event.kind or "", "fatal bus errors" if event.fatal else "uncorrected bus errors"
    )
    known = {one.key for one in found}
    kind_of_parts = _PARTS[0] if event.kind == "aer corrected" else _PARTS[1]
    parts = [one for one in events(snapshot, kind_of_parts) if one.subject == subject and one.key not in known]
    names = dict.fromkeys(name for one in (*found, *parts) for name in re.findall(_NAME, event_evidence(one).text))
    kind += f" (among them {', '.join(names)})" if names and event.kind != "surprise down" else ""
    after = ", and nothing is there now" if _empty(snapshot, subject) else ", and came up again"
    after = "" if _unseen(snapshot, subject) else after
    end = after if event.kind == "surprise down" else ""
    if event.kind == "aer corrected" and _is_storm(snapshot, event):
        end = ", faster than the kernel could read them"
    elif event.kind == "aer corrected" and severity == "info" and not is_history(snapshot, event):
        end = f"; the log shows no more than {_harmless(snapshot, event):.0f} an hour, which cost no bandwidth"
    return Finding(
        code="pcie-errors",
        kind="state" if event.kind == "aer corrected" else "event",
        severity=severity,
        subject=subject,
        subject_name=name if function else None,
        message=f"the kernel logged of {name}: {kind}{times([event])}{end}",
        since=since(event),
        observed=event.count or 1,
        unit="count",
        cause="the link's signal: seating, riser, retimer or cable; then the device, or a device below it",
        location=location(function, snapshot) if function else {},
        evidence=tuple(map(event_evidence, (*found, *parts))),
    )


def limited(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The kernel logged a link that limits the bandwidth of a device.

    Many machines are built so. If equal devices have more bandwidth, it is a fault. It is "info" if sysfs shows the
    device's link: other rules compare the present link with equal links.
    """
    ports: dict[str, list[Event]] = defaultdict(list)
    every = [one for one in events(snapshot, "pcie limited") if one.port and one.rate and one.able]
    for event in _latest(every):
        if not _seen(snapshot, node, event):
            ports[event.port or ""].append(event)
    for port, found in ports.items():
        worst = min(found, key=lambda one: (one.rate or 0.0) / (one.able or 1.0))
        better, before = _better(snapshot, worst), _before(every, worst)
        trained_low = bool(better or before)
        severity = _limit_severity(snapshot, worst, better) if better or not _is_shared(found) else "info"
        yield Finding(
            code="pcie-path-bottleneck",
            severity="warning" if before else severity,
            confidence="likely" if trained_low else "possible",
            subject=port,
            subject_name=function_name(snapshot, snapshot.of(Pci)[port]) if port in snapshot.of(Pci) else None,
            message=f"the link at {port} left {', '.join(str(one.subject) for one in found)} "
            f"{as_gigabytes(worst.rate or 0)} of {as_gigabytes(worst.able or 0)} when the kernel found it"
            + _beside(better, before),
            expected=worst.able,
            observed=worst.rate,
            unit="bytes_per_second",
            basis=COHORT if better else "capability",
            expected_source=f"{better} other devices of the same kind" if better else f"what {worst.subject} supports",
            cause="a link that trained below what it can do"
            if trained_low
            else "a slot or a switch of an older generation",
            evidence=tuple(event_evidence(one) for one in found),
        )


def _is_shared(found: Sequence[Event]) -> bool:
    """Whether devices of several buses are behind a port with four lanes: it is the uplink of a chipset."""
    buses = {(one.subject or "").rpartition(":")[0] for one in found}
    return len(buses) > 1 and all(" x4 link at " in (one.text or "") for one in found)


def _latest(found: Iterable[Event]) -> Iterable[Event]:
    """The last of the events of each device below a port: its link can come back with another speed."""
    last: dict[tuple[str | None, str | None], Event] = {}
    for one in found:
        known = last.setdefault((one.subject, one.port), one)
        slower = not is_later(known, one) and (one.rate or 0.0) < (known.rate or 0.0)
        if slower or is_later(one, known):
            last[one.subject, one.port] = one
    return last.values()


def _before(found: Sequence[Event], worst: Event) -> float | None:
    """The rate that the same link had earlier in the log, if it was higher."""
    rates = [one.rate or 0.0 for one in found if (one.subject, one.port) == (worst.subject, worst.port)]
    return max((rate for rate in rates if rate > (worst.rate or 0.0)), default=None)


def _beside(better: int, before: float | None) -> str:
    if before:
        return f"; earlier it was {as_gigabytes(before)}"
    return f"; {better} equal devices have more" if better else "; many machines are built that way"


def _seen(snapshot: Snapshot, node: Node, event: Event) -> bool:
    """Whether to skip the event: other rules check the current link, the device is absent, or its link is emulated."""
    function = snapshot.of(Pci).get(event.subject or "")
    if node.virtual and not snapshot.site.trust_virtual_links:
        return True
    if function is None:
        return snapshot.origin != "dumps" and bool(snapshot.of(Pci))
    return False


def _limit_severity(snapshot: Snapshot, event: Event, better: int) -> Severity:
    """The severity of a limit. `better`: the number of equal devices with more bandwidth."""
    function = snapshot.of(Pci).get(event.subject or "")
    shown = function and None not in (function.width, function.max_width, function.max_speed)
    if better and not shown:
        return "critical"
    return "warning" if snapshot.origin == "dumps" and not shown and _has_fewer_lanes(event) else "info"


def _has_fewer_lanes(event: Event) -> bool:
    """Whether the driver of a NIC or a GPU says that the device got fewer lanes than it has, or the PCI core that a
    device with 16 lanes got at most four.
    """
    found = _LANES_OF_FAST.search(event.text or "")
    return found is not None and (found["got"] is None or int(found["got"]) < int(found["of"]))


def _better(snapshot: Snapshot, event: Event) -> int:
    """The number of equal devices with more bandwidth. 0 if these are not the majority."""
    function = snapshot.of(Pci).get(event.subject or "")
    if function is None or function.device is None:
        return 0
    cohort = [
        other.key
        for other in snapshot.of(Pci).values()
        if (other.vendor, other.device) == (function.vendor, function.device) and other.key != function.key
    ]
    rates = {one.subject: one.rate for one in _latest(events(snapshot, "pcie limited"))}
    better = [key for key in cohort if (rates.get(key) or float("inf")) > (event.rate or 0.0)]
    return len(better) if 2 * len(better) > len(cohort) else 0


RULES = (
    Rule("pcie-errors", Node, (), errors, any_logged(*_KINDS)),
    Rule("pcie-path-bottleneck", Node, (), limited, any_logged("pcie limited")),
)
