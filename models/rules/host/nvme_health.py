"""NVMe drives that report their own failure, from the health log (NVM Express Base Specification 2.0c, 5.16.1.3)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Nvme
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.rule import Rule
from ..core.wording import cited

# Bits of the critical warning: the severity and the meaning.
_WARNINGS: tuple[tuple[int, Severity, str], ...] = (
    (3, "critical", "is read-only"),
    (2, "critical", "reports that it is unreliable (media or internal errors)"),
    (5, "critical", "has a persistent memory region that is read-only or unreliable"),
    (4, "warning", "has lost the backup of its volatile memory"),
    (0, "warning", "has too few spare blocks"),
    (1, "warning", "reports a temperature outside of its limits"),
)
_UNRELIABLE = 1 << 2
_WORN = 100  # percent of the endurance; above it a drive still works (NVM Express Base Specification)
# One bad block counts at each attempt to read it, so a few tens of errors can be one block that was lost years ago.
_MANY_ERRORS = 100


def is_local(snapshot: Snapshot, drive: Nvme) -> bool:
    """Select live drives of this machine."""
    return drive.address is not None and drive.state == "live"


def is_dumped(snapshot: Snapshot, drive: Nvme) -> bool:
    """Select drives whose health log is in a dump that does not show their state."""
    return snapshot.origin == "dumps" and drive.state is None and drive.transport in (None, "pcie")


def unhealthy(snapshot: Snapshot, drive: Nvme) -> Iterator[Finding]:
    """The drive reports a failure. The most severe of its reports."""
    name = f"NVMe drive {drive.key}" + (f" ({drive.model})" if drive.model else "")
    bits = drive.critical_warning or 0
    if bits == _UNRELIABLE and snapshot.origin == "dumps" and None in (drive.used, drive.spare):
        message = f"{name} reports that it is unreliable: errors of its medium, or its rated endurance is used"
        yield _finding(drive, "warning", message, "critical_warning", 0)
        return
    if _is_only_worn(drive):
        message = f"{name} has used {drive.used} % of its rated endurance, and sets its bit for a lower reliability"
        yield _finding(drive, "warning", message, "critical_warning", 0)
        return
    severe = next((row for row in _WARNINGS if bits >> row[0] & 1), None)
    if severe:
        _, severity, text = severe
        also = [what for bit, _, what in _WARNINGS if bits >> bit & 1 and what != text]
        message = "; it ".join([f"{name} {text}", *also])
        yield _finding(drive, severity, message, "critical_warning", 0)
    elif None not in (drive.spare, drive.spare_threshold) and (drive.spare or 0) < (drive.spare_threshold or 0):
        message = f"{name} has {drive.spare} % of its spare blocks left, its threshold is {drive.spare_threshold} %"
        yield _finding(drive, "warning", message, "spare", drive.spare_threshold)
    elif drive.media_errors:
        message = f"{name} could not correct {drive.media_errors:,} errors of its medium in its life: data may be lost"
        yield _finding(drive, "warning" if drive.media_errors >= _MANY_ERRORS else "info", message, "media_errors", 0)
    elif drive.used is not None and drive.used >= _WORN:
        message = f"{name} has used {drive.used} % of its rated endurance"
        yield _finding(drive, "info", message, "used", _WORN)


def _is_only_worn(drive: Nvme) -> bool:
    """Whether wear alone explains the bit for a lower reliability: there are spare blocks and no errors.

    Some drives set the bit when their rated endurance is used: https://github.com/smartmontools/smartmontools/issues/537
    """
    spare = drive.spare is not None and drive.spare > (drive.spare_threshold or 0)
    return drive.critical_warning == _UNRELIABLE and (drive.used or 0) >= _WORN and spare and not drive.media_errors


def _finding(drive: Nvme, severity: Severity, message: str, field: str, expected: int | None) -> Finding:
    return Finding(
        code="storage-degraded",
        severity=severity,
        subject=drive.key,
        subject_name=drive.model,
        message=message,
        expected=expected,
        observed=getattr(drive, field),
        cause="a failing or worn drive",
        evidence=cited(drive, field),
    )


RULES = (
    Rule("storage-degraded", Nvme, ("critical_warning?", "state"), unhealthy, is_local),
    Rule("storage-degraded", Nvme, ("critical_warning",), unhealthy, is_dumped),
)
