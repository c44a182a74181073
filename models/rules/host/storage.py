"""Disks: their PCIe links, their controllers and their arrays."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Array, Nvme, Pci
from ...facts.pci_classes import kind_of
from ...facts.records import Evidence, NotChecked
from ...inventory.present import earlier_item
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name, location, missed
from ..pcie.pcie import speed_below, width_below

_DRIVER = "nvme"  # the kernel's (drivers/nvme/host/pci.c)


def on_link(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVMe controllers at the lower end of a PCIe link, and functions on a link whose class was not read."""
    disk = function.pci_class is None or kind_of(function) == "nvme"
    return disk and not function.lost and function.key in snapshot.topology.link_below


def link(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """An NVMe link has less width or (under load) less speed than the controller and its slot support."""
    yield from width_below(snapshot, function, "storage-link-slow")
    yield from speed_below(snapshot, function, "storage-link-slow")


def dead(snapshot: Snapshot, controller: Nvme) -> Iterator[Finding]:
    """The driver does not use the controller any more."""
    if controller.state in ("dead", "deleting", "deleting (no IO)"):
        yield Finding(
            code="storage-degraded",
            severity="critical",
            subject=controller.key,
            subject_name=controller.model,
            fact=f"is {controller.state}",
            message=f"NVMe controller {controller.key} ({controller.model}) is {controller.state}",
            expected="live",
            observed=controller.state,
            case="off the bus",
            cause="the controller stopped answering; the kernel log has the time-outs before it",
            evidence=cited(controller, "state"),
        )


def may_lack_controller(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVMe functions of a machine, without virtual ones, and functions whose class was not read."""
    disk = function.pci_class is None or kind_of(function) == "nvme"
    return snapshot.origin != "dumps" and disk and not function.physfn and not function.lost


def without_controller(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """An NVMe drive that no driver uses, beside others that have a controller.

    inventory.py reports a drive that had a driver before. An operator may hand a drive to a guest.
    """
    item = earlier_item(snapshot, "nvme", function.key)
    known = {controller.address for controller in snapshot.of(Nvme).values()}
    others = [one for one in snapshot.functions("nvme") if one.key in known]
    unread = missed(snapshot, "Pci.driver", function.key) or any(one.what == "Nvme" for one in snapshot.not_checked)
    if function.driver not in (None, "", _DRIVER) or function.key in known or unread or not others:
        return
    if item and (item.accepted or item.alias or item.driver):
        return
    name, fact = function_name(snapshot, function), f"has {'no controller' if function.driver else 'no driver'}"
    yield Finding(
        code="storage-missing",
        severity="warning",
        confidence="likely",
        subject=function.key,
        subject_name=name,
        fact=fact,
        message=f"{name} {fact}, and so no disk; {len(others)} other NVMe disks have both",
        expected="a controller",
        observed="none",
        cause="the drive failed its start, and the driver gave it up; or an operator unbound it",
        location=location(function),
        evidence=(Evidence("sys/class/nvme", " ".join(sorted(snapshot.of(Nvme)))),),
    )


def assembled(snapshot: Snapshot, array: Array) -> bool:
    """Select assembled arrays. Without a level, an array is being assembled or is a container of other arrays."""
    return array.level is not None


def is_counted(snapshot: Snapshot, array: Array) -> bool:
    """Select arrays of which a dump shows the number of members, and not their names."""
    return assembled(snapshot, array) and array.members is None and snapshot.origin == "dumps"


def has_state_only(snapshot: Snapshot, array: Array) -> bool:
    """Select arrays of which a dump shows the state, and not the number of members."""
    return is_counted(snapshot, array) and array.wanted is None


def degraded(snapshot: Snapshot, array: Array) -> Iterator[Finding]:
    """An array runs without some of its members, or does not run."""
    present = set(array.members or ()) - set(array.faulty or ())
    missing = max(array.missing or 0, (array.wanted or 0) - len(present) if array.members else 0)
    stopped = array.state in ("inactive", "broken")  # broken: raid0 and linear, since Linux 5.4
    if missing <= 0 and not stopped and array.state != "degraded":
        return
    which = f"; {', '.join(array.faulty)} failed" if array.faulty else ""
    counted = f"has {(array.wanted or 0) - missing} of {array.wanted} members{which}" if array.wanted else "is degraded"
    yield Finding(
        code="storage-degraded",
        severity="critical",
        confidence="likely" if array.members is None and "state" not in array.cites else "certain",
        subject=array.key,
        subject_name=array.level,
        message=f"{array.level or 'array'} {array.key} {counted}" + ("; it does not run" if stopped else ""),
        expected=array.wanted,
        observed=(array.wanted or 0) - missing if array.wanted else array.state,
        unit="members" if array.wanted else None,
        cause="a disk failed or did not come up",
        evidence=cited(array, "missing", "state", "wanted"),
    )


RULES = (
    Rule("storage-link-slow", Pci, ("pci_class", "width?", "max_width", "max_speed?"), link, on_link),
    Rule("storage-missing", Pci, ("pci_class", "driver?", "Nvme?"), without_controller, may_lack_controller),
    Rule("storage-degraded", Nvme, ("state",), dead),
    Rule("storage-degraded", Array, ("wanted", "members"), degraded, assembled),
    Rule("storage-degraded", Array, ("wanted", "missing"), degraded, is_counted),
    Rule("storage-degraded", Array, ("state",), degraded, has_state_only),
)
