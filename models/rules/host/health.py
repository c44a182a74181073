"""Temperatures of processors at their limit, and disks that report errors (ATA and SAS)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.health import DiskHealth, Temperature
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.rule import Rule
from ..core.wording import cited

# Replaced sectors, and errors that were not corrected: a disk with fewer can work for years. One bad sector counts at
# each attempt to read it.
_MANY = 100


def too_hot(snapshot: Snapshot, one: Temperature) -> Iterator[Finding]:
    """A processor is as hot as its own limit or hotter, so that it lowers its clocks."""
    if (one.celsius or 0) >= (one.critical or 0) > 0:
        yield Finding(
            code="cpu-throttled",
            severity="warning",
            confidence="likely",
            subject=one.key,
            message=f"{one.key} is at {one.celsius:.0f} degrees, its limit is {one.critical:.0f} degrees: the "
            "processor lowers its clocks",
            expected=one.critical,
            observed=one.celsius,
            unit="celsius",
            cause="fans, filters, the heat sink, or the temperature of the room",
            evidence=cited(one, "celsius"),
        )


def unhealthy(snapshot: Snapshot, disk: DiskHealth) -> Iterator[Finding]:
    """The most severe report of a disk: its own assessment, unreadable sectors, replaced sectors."""
    name = disk.key if disk.key.startswith("disk") else f"disk {disk.key}"
    name += f" ({disk.model})" if disk.model else ""
    if disk.passed is False:
        yield _finding(disk, "critical", f"{name} reports that it fails", "passed")
    elif disk.failing:
        names = ", ".join(disk.failing)
        yield _finding(disk, "critical", f"{name}: attributes are below their thresholds: {names}", "failing")
    elif disk.pending:
        message = f"{name} has {disk.pending:,} sectors that it cannot read: their data may be lost"
        yield _finding(disk, "warning", message, "pending")
    elif disk.uncorrectable:
        message = f"{name} found {disk.uncorrectable:,} sectors that it cannot read"
        yield _finding(disk, "warning", message, "uncorrectable")
    elif disk.unreadable:
        yield _finding(disk, "warning", f"{name}: its latest self-test found an error", "unreadable")
    else:
        yield from _of_life(disk, name)


def _of_life(disk: DiskHealth, name: str) -> Iterator[Finding]:
    """The largest count since the disk was made."""
    fields = ("unrecovered", f"could not correct {disk.unrecovered or 0:,} errors in its life: data may be lost")
    others = ("reallocated", f"has replaced {disk.reallocated or 0:,} sectors in its life")
    field, text = max(fields, others, key=lambda one: getattr(disk, one[0]) or 0)
    if count := getattr(disk, field):
        yield _finding(disk, "warning" if count >= _MANY else "info", f"{name} {text}", field)


def _finding(disk: DiskHealth, severity: Severity, message: str, field: str) -> Finding:
    observed = getattr(disk, field)
    return Finding(
        code="storage-degraded",
        severity=severity,
        subject=disk.key,
        subject_name=disk.model,
        message=message,
        observed=observed if isinstance(observed, int) and not isinstance(observed, bool) else str(observed),
        cause="a failing or worn disk",
        evidence=cited(disk, field),
    )


RULES = (
    Rule("cpu-throttled", Temperature, ("celsius", "critical"), too_hot),
    Rule(
        "storage-degraded",
        DiskHealth,
        ("passed?", "failing?", "pending?", "uncorrectable?", "unreadable?", "unrecovered?", "reallocated?"),
        unhealthy,
    ),
)
