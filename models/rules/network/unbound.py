"""NICs and other accelerators that a text of lspci shows without a driver. driver.py has the GPUs of NVIDIA."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.nics import nic_of
from ...facts.machine import Pci
from ...facts.pci_classes import AMD, kind_of
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name, gap, location

_MELLANOX = 0x15B3


def is_unbound(snapshot: Snapshot, function: Pci) -> bool:
    """Select NICs of fabrics and GPUs of AMD without a driver, in dumps."""
    if snapshot.origin != "dumps" or function.driver != "" or function.physfn or function.lost:
        return False
    kind = kind_of(function)
    if kind == "gpu":
        return function.vendor == AMD
    return kind == "nic" and (function.vendor == _MELLANOX or nic_of(function) is not None)


def without_driver(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """A NIC without a driver is no network device. An AMD GPU without one may be a display adapter: a gap."""
    name = function_name(snapshot, function)
    if kind_of(function) == "gpu":
        yield from gap(
            snapshot, "Pci.driver", function.key, Reason.INCOMPLETE, f"{name} has no driver", "dmesg: amdgpu"
        )
        return
    yield Finding(
        code="nic-missing",
        severity="warning",
        confidence="likely",
        subject=function.key,
        subject_name=name,
        message=f"{name} has no driver: it is on the bus, and no network or RDMA device belongs to it",
        expected="a driver",
        observed="none",
        cause="the driver is not loaded or failed to start; or the NIC was unbound for a guest",
        location=location(function),
        evidence=cited(function, "driver"),
    )


RULES = (Rule("nic-missing", Pci, ("driver",), without_driver, is_unbound),)
