"""Kernel log events of disks and of the file systems on them. storage.py reports the states of controllers and arrays.

Sources of the lines: probes/kernel_log/forms.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from ...facts.machine import Disk, Event, Mount, Node, Nvme
from ...inventory.snapshot import Snapshot
from ...report import SEVERITIES, Finding, Severity
from ..core.log_history import event_evidence, events, events_about, is_history, is_later, since, times, total_count
from ..core.rule import Rule
from ..gpu.pcie_events import any_logged

_TIMEOUTS, _MEDIUM = ("nvme", "nvme gone"), ("medium error", "unrecovered read")
_STOPPED, _DAMAGED = "file system stopped", "file system error"
_KINDS = (*_TIMEOUTS, *_MEDIUM, _STOPPED, _DAMAGED)
ANSWERS = ("nvme-io-queues", "nvme-abort-done")  # messages of a controller that answers again
_DRIVE = "the drive, its link, or its power"


class _Fault(Struct, frozen=True):
    """What the log says of one device."""

    severity: Severity
    message: str
    found: list[Event]
    cause: str
    expected: str | int | None = None
    observed: str | int | None = None
    state: bool = False  # it holds now
    of_files: bool = False  # of a file system


def disks(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A disk or a file system failed by the kernel's log. The most severe fault of each device."""
    devices: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(events(snapshot, *_KINDS), key=lambda one: one.at or 0.0):
        devices[event.subject or "node"].append(event)
    for key, found in devices.items():
        faults = [*_controller(snapshot, key, found), *_medium(snapshot, key, found), *_files(snapshot, key, found)]
        if faults:
            worst = min(faults, key=lambda one: SEVERITIES.index(one.severity))
            yield _finding(snapshot, key, worst, found)


def _controller(snapshot: Snapshot, key: str, found: list[Event]) -> Iterator[_Fault]:
    """An NVMe controller timed out, or the kernel disabled it. storage.py reports controllers in state "dead"."""
    found = [one for one in found if one.kind in _TIMEOUTS]
    controller = snapshot.of(Nvme).get(key)
    if not found or (controller and controller.state in ("dead", "deleting", "deleting (no IO)")):
        return
    if controller is None and any(one.kind == "nvme gone" for one in found):
        text = f"the kernel gave NVMe controller {key} up, and it is not listed any more"
        yield _Fault("critical", text, found, _DRIVE, "live", "gone", state=True)
        return
    answers = [one for one in events_about(snapshot, key, "message") if one.name in ANSWERS]
    works = bool(controller) or any(is_later(one, found[-1]) for one in answers)
    # A register that reads as all ones: the controller did not answer on PCIe.
    rare = works and total_count(found) < 2 and not any(one.fatal for one in found)
    few: Severity = "info" if rare or is_history(snapshot, found[-1]) else "warning"
    text = f"NVMe controller {key} did not answer in time{times(found)}, and "
    text += "works again" if works else "no later line says that it works again"
    yield _Fault(few, text, found, _DRIVE, "live", controller.state if controller else None)


def _medium(snapshot: Snapshot, key: str, found: list[Event]) -> Iterator[_Fault]:
    """A disk could not read or write a block of its medium. The driver and the block layer log one line each."""
    several = [[one for one in found if one.kind == kind] for kind in _MEDIUM]
    lines = max(several, key=total_count)
    if not lines:
        return
    severity: Severity = "info" if is_history(snapshot, lines[-1]) else "warning"
    text = f"disk {key} could not access blocks of its medium{times(lines)}"
    cause = "a failing drive: the data of these blocks is lost unless an array holds a copy"
    yield _Fault(severity, text, lines, cause, 0, total_count(lines))


def _files(snapshot: Snapshot, key: str, found: list[Event]) -> Iterator[_Fault]:
    """The kernel made a file system read-only or shut it down after an error, or found errors in it.

    A mount that is read-only by design has no such line. A file system that is mounted writable again has been
    repaired. XFS stays mounted writable after a shutdown, so only a day or a boot makes its shutdown history.
    """
    mounts = [mount for mount in snapshot.of(Mount).values() if mount.device == f"/dev/{key}"]
    where = f"the file system on {key}" + (f" ({', '.join(sorted(mount.key for mount in mounts))})" if mounts else "")
    if stopped := [one for one in found if one.kind == _STOPPED]:
        xfs = "XFS (" in (stopped[-1].text or "")
        now = bool(mounts) and all(mount.read_only for mount in mounts) and snapshot.origin != "dumps"
        repaired = not xfs and any(mount.read_only is False for mount in mounts)
        past = (is_history(snapshot, stopped[-1]) and not now) or repaired
        what = "shut down" if xfs else "made read-only"
        text = f"the kernel {what} {where} after an error{times(stopped)}" + ("; it is writable again" * repaired)
        yield _Fault("info" if past else "critical", text, stopped, _DRIVE, "writable", what, now, True)
    if damaged := [one for one in found if one.kind == _DAMAGED]:
        severity: Severity = "info" if is_history(snapshot, damaged[-1]) else "warning"
        text = f"the kernel found errors in {where}{times(damaged)}"
        cause = "a failing disk, or a file system that an earlier failure damaged: unmount it and run fsck"
        yield _Fault(severity, text, damaged, cause, 0, total_count(damaged), of_files=True)


def _finding(snapshot: Snapshot, key: str, fault: _Fault, found: list[Event]) -> Finding:
    controller, disk = snapshot.of(Nvme).get(key), snapshot.of(Disk).get(key)
    known = controller or disk
    return Finding(
        code="storage-degraded",
        kind="state" if fault.state else "event",
        severity=fault.severity,
        subject=key,
        subject_name=known.model if known else None,
        message=fault.message,
        since=since(fault.found[-1]),
        expected=fault.expected,
        observed=fault.observed,
        unit="count" if fault.expected == 0 else None,
        case="off the bus" if fault.observed == "gone" else "file system" if fault.of_files else None,
        cause=fault.cause,
        evidence=tuple(event_evidence(one) for one in found),
    )


RULES = (Rule("storage-degraded", Node, (), disks, any_logged(*_KINDS)),)
