"""Kernel log events of memory and processors, if no counter shows the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...facts.machine import Event, Node, Package
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.log_history import by_subject, event_evidence, events, is_history, since, times, total_count
from ..core.rule import Rule
from ..gpu.pcie_events import any_logged

_CORRECTED = 50  # in an hour; rasdaemon takes a memory page out of use at 50 a day (PAGE_CE_THRESHOLD)
_BURST = 10  # fewer errors show no rate
_MINUTE, _HOUR = 60.0, 3600.0
_HOT = 3  # entries in an hour
_OFTEN = 1000  # events since boot: the kernel logs one line in five minutes for any number of them
_EVENTS = re.compile(r"\(total events = ([0-9]{1,12})\)")  # therm_throt.c


def memory(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Errors of the host's memory in the log, if no counter shows them; those of a text can be of another time."""
    counted = [one for one in snapshot.observations if one.quantity in ("ce_count", "ue_count")]
    if any(snapshot.origin != "dumps" or one.value for one in counted):
        return
    for key, found in by_subject(events(snapshot, "edac")).items():
        bad = [one for one in found if one.fatal]
        last = max(bad or found, key=lambda one: one.recent or 1)
        few = not bad and not _is_storm(snapshot, last)
        if few and snapshot.origin != "dumps":
            continue
        severity: Severity = "info" if few or is_history(snapshot, last) else "critical" if bad else "warning"
        kind = "uncorrected" if bad else "corrected"
        modules = _modules(bad or found)
        yield Finding(
            code="host-memory-errors",
            kind="event" if bad else "state",
            severity=severity,
            subject=key,
            message=f"the kernel logged {total_count(bad or found)} {kind} memory errors of {key}{modules}",
            case=kind,
            fact=f"had {total_count(bad or found)} {kind} memory errors",
            since=since(last),
            expected=0,
            observed=total_count(bad or found),
            unit="count",
            cause="a memory module; the log names its place",
            evidence=tuple(event_evidence(one) for one in found),
        )


def _is_storm(snapshot: Snapshot, event: Event) -> bool:
    """Whether the errors of a module come at a rate that needs a replacement. An excerpt can be shorter than an hour.

    Of a text without times, the number of errors decides.
    """
    recent = event.recent if event.recent is not None else event.count or 1
    if event.first is None or event.until is None:
        return recent >= _CORRECTED
    span = max(event.until - event.first, _MINUTE)
    return recent >= _CORRECTED or (recent >= _BURST and span < _HOUR and recent * _HOUR >= _CORRECTED * span)


def _modules(found: Sequence[Event]) -> str:
    """The modules that the lines name, the one with the most errors first."""
    names = dict.fromkeys(one.name for one in sorted(found, key=lambda one: -(one.count or 1)) if one.name)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" ({', '.join([str(name) for name in names][:3])}{more})" if names else ""


def heat(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Processors slowed down because of heat, if the counters were not read (host_counters.py)."""
    if any(one.quantity == "throttle_time" for one in snapshot.observations):
        return
    packages: dict[str, list[Event]] = defaultdict(list)
    for event in events(snapshot, "throttle"):
        packages[_package_of(snapshot, event)].append(event)
    for key, found in packages.items():
        most = max(found, key=lambda one: (_total(one), one.recent or 1))
        few = (most.recent or 1) < _HOT and _total(most) < _OFTEN
        total = f" ({_total(most)} times since boot, by the line)" if _total(most) else ""
        yield Finding(
            code="cpu-throttled",
            severity="info" if is_history(snapshot, most) or few else "warning",
            subject=key,
            message=f"the processors of {key} slowed down because of heat{times([most])}{total}",
            since=since(most),
            observed=max(most.count or 1, _total(most)),
            unit="count",
            cause="fans, filters, a heat sink, or the room's temperature",
            evidence=(event_evidence(most),),
        )


def _total(event: Event) -> int:
    """The number of such events since boot that the line gives. 0: it gives none."""
    found = _EVENTS.search(event.text or "")
    return int(found[1]) if found else 0


def _package_of(snapshot: Snapshot, event: Event) -> str:
    packages = snapshot.of(Package).values()
    return next((p.key for p in packages if event.subject in {f"cpu{number}" for number in p.cpus or ()}), "node")


RULES = (
    Rule("host-memory-errors", Node, (), memory, any_logged("edac")),
    Rule("cpu-throttled", Node, (), heat, any_logged("throttle")),
)
