"""Processors that run below their speed because of heat or power, and memory errors, from counters."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...facts.machine import Node, Package
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...facts.units import KIB, as_utc
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import missed

_SHARE = 0.01  # of the time
_LEAST = 60.0  # seconds of throttling since boot: less may be a single event long ago
_DAY = 86400.0
# Corrected errors a day. rasdaemon takes a memory page out of use at this rate (misc/rasdaemon.env, PAGE_CE_THRESHOLD).
_CORRECTED = 50
_MANY = (
    1000  # without a time: the number from which on the messages of EDAC are a warning (catalog/messages/memory.toml)
)
_PAGES = "memory pages"  # of the summary of ras-mc-ctl, from all boots
_COUNTERS = ("ce_count", "ue_count", "ce_count_day", "corrupted")


def counts_time(snapshot: Snapshot, package: Package) -> bool:
    """Select packages with a throttle counter: the kernel has it for Intel processors."""
    return bool(_latest(snapshot, package.key, "throttle_time")) or missed(
        snapshot, "Package.throttle_time", package.key
    )


def throttled(snapshot: Snapshot, package: Package) -> Iterator[Finding]:
    """Throttled for more than 1 % of the time since the last reading, or else since boot."""
    now = _latest(snapshot, package.key, "throttle_time")
    span = _since(snapshot, now) if now else None
    if now is None or span is None:
        return
    before, seconds = span
    held = now.value - (before.value if before else 0)
    if held <= _SHARE * seconds or (before is None and held < _LEAST):
        return
    when = f"of the last {seconds:.0f} s" if before else f"of the {seconds / 3600:.0f} hours since boot"
    yield Finding(
        code="cpu-throttled",
        severity="warning",
        subject=package.key,
        subject_name=package.model,
        message=f"{package.key} was held back for {held:,.0f} s {when}, {held / seconds:.0%} of the time",
        expected=_SHARE,
        observed=held / seconds,
        unit="ratio",
        cause="heat, or a signal of the board that power or cooling fails (PROCHOT)",
        evidence=(before.evidence, now.evidence) if before else (now.evidence,),
    )


def counts_memory_errors(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes whose kernel counts memory errors, or whose counters could not be read."""
    if snapshot.origin == "dumps":
        return False
    return any(_controllers(snapshot)) or any(lost.what == "Node.edac" for lost in snapshot.not_checked)


def shows_counters(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with counters of memory errors."""
    return snapshot.origin == "dumps" and any(_controllers(snapshot))


def memory_errors(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """Any uncorrected error; corrected errors above a daily rate."""
    for name in _controllers(snapshot):
        uncorrected, corrected = _latest(snapshot, name, "ue_count"), _latest(snapshot, name, "ce_count")
        accepted = snapshot.when_accepted.get((name, "ue_count"))
        bad = uncorrected.value - (accepted.value if accepted else 0) if uncorrected else 0
        if uncorrected and bad > 0:
            errors = "1 uncorrected error" if bad == 1 else f"{bad:.0f} uncorrected errors"
            when = f"the node was accepted {as_utc(accepted.at)}" if accepted else "boot"
            recorded = f"{bad:.0f} with an uncorrected error, recorded by rasdaemon"
            text = recorded if name == _PAGES else f"{errors} of memory since {when}"
            finding = _finding(name, uncorrected, text)
            yield replace(finding, confidence="likely") if snapshot.origin == "dumps" else finding
        elif corrected and (span := _since(snapshot, corrected, oldest=True)):
            before, seconds = span
            new = corrected.value - (before.value if before else 0)
            if new >= _CORRECTED and new / seconds > _CORRECTED / _DAY:
                text = f"{new:,.0f} corrected errors of memory in {seconds / 3600:.1f} hours"
                yield _finding(name, corrected, f"{text}, more than {_CORRECTED} a day")
        elif snapshot.origin == "dumps":
            yield from _without_time(snapshot, name, corrected)


def _without_time(snapshot: Snapshot, name: str, corrected: Observation | None) -> Iterator[Finding | NotChecked]:
    """Errors of a dump that does not show since when they were counted, and those that a tool counts for one day."""
    daily, lost = _latest(snapshot, name, "ce_count_day"), _latest(snapshot, name, "corrupted")
    if daily and daily.value >= _CORRECTED:
        yield _finding(name, daily, f"{daily.value:,.0f} corrected errors of memory in 24 hours")
    elif corrected and corrected.value > 0:
        finding = _finding(name, corrected, f"{corrected.value:,.0f} corrected errors of memory")
        yield finding if corrected.value >= _MANY else replace(finding, severity="info")
        if daily is None and corrected.value < _MANY:
            yield NotChecked(
                what="Node.edac",
                subject="node",
                reason=Reason.INCOMPLETE,
                detail="corrected errors of memory were counted since an unknown time",
                how="read the counters again after a day, or run linkgauge on the machine",
            )
    elif lost and lost.value > 0:
        text = f"{lost.value / KIB:,.0f} KiB of memory that the kernel uses no more because of errors"
        yield replace(_finding(name, lost, text), severity="info", unit="bytes")


def _finding(name: str, counted: Observation, text: str) -> Finding:
    uncorrected = counted.quantity == "ue_count"
    return Finding(
        code="host-memory-errors",
        kind="event" if uncorrected else "state",
        severity="critical" if uncorrected else "warning",
        subject=name,
        message=f"memory pages: {text}" if name == _PAGES else f"memory controller {name} counted {text}",
        expected=0,
        observed=int(counted.value),
        unit="count",
        cause="a memory module or its contacts",
        case=None if uncorrected else "corrected",
        evidence=(counted.evidence,),
    )


def _controllers(snapshot: Snapshot) -> list[str]:
    about = (one.about for one in snapshot.observations if one.quantity in _COUNTERS)
    return list(dict.fromkeys(name for name in about if isinstance(name, str)))


def _latest(snapshot: Snapshot, about: str, quantity: str) -> Observation | None:
    seen = [one for one in snapshot.observed.get(about, ()) if one.quantity == quantity]
    return max(seen, key=lambda one: one.at, default=None)


def _since(snapshot: Snapshot, now: Observation, oldest: bool = False) -> tuple[Observation | None, float] | None:
    """An earlier reading of the same boot and the seconds since it. Without one: None and the seconds since boot.

    Returns None if neither is known.
    """
    earlier = [one for one in snapshot.earlier.get((now.about, now.quantity), ()) if one.at < now.at]
    before = earlier[0 if oldest else -1] if earlier else None
    node = snapshot.of(Node).get("node")
    start = before.at if before else node.booted if node else None
    if start is None or start >= now.at or (before and before.value > now.value):
        return None
    return before, now.at - start


RULES = (
    Rule("cpu-throttled", Package, ("throttle_time?",), throttled, counts_time),
    Rule("host-memory-errors", Node, ("edac?", "booted?"), memory_errors, counts_memory_errors),
    Rule("host-memory-errors", Node, (), memory_errors, shows_counters),
)
