"""The role of a port in the fabric: why it belongs to it, and how severe it is if it does not work."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase

from msgspec import Struct

from ...catalog.nics import nic_of
from ...facts.machine import Net, Port, Rdma
from ...facts.pci_classes import function_number
from ...inventory.cohorts import carried, ports_above
from ...inventory.inventory import UP
from ...inventory.present import earlier_item
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Basis, Severity
from ..core.machine_expectations import profile
from ..gpu.missing import whole
from .ports import AnyPort, cohort, function_of, is_used, once_per_port, product, real, up

_SMALLEST_COHORT = 2
_ETHERNET = re.compile(r"irdma|bnxt_re|roce|efa|erdma|ionic|rxe|siw")  # RDMA devices that have no InfiniBand
_RAILS = 8  # a machine with a NIC for each GPU and at least so many GPUs may lack one NIC


class Role(Struct, frozen=True):
    """Why a port belongs to the fabric, and the severity if it does not work."""

    basis: Basis
    why: str
    severity: Severity


@once_per_port
def role_of(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """The role follows from the site file, the machine type, the inventory, the products and their places, not from the
    ports and GPUs that work now. So the same fault has the same severity whatever else is broken. Two kinds of ports
    have no such evidence: second ports, and Ethernet ports without RDMA. Those in use show whether these are.
    """
    names = [port.key, *([port.device or ""] if isinstance(port, Port) else [])]
    if any(fnmatchcase(name, pattern) for name in names for pattern in snapshot.site.fabric):
        return Role("site", "the site file names it as fabric", "critical")
    if isinstance(port, Port) and is_unconfigured(port):
        return Role("capability", "its cable is in and its link up: no subnet manager has configured it", "critical")
    item = earlier_item(snapshot, "port", port.key)
    if item and item.accepted and item.state == UP:
        certain = isinstance(port, Port) or _is_fabric_product(snapshot, port)
        return Role("baseline", "it was up when the node was accepted", "critical" if certain else "warning")
    if role := _of_machine_type(snapshot, port):
        return role
    if not real(snapshot, port):
        return None
    return _of_structure(snapshot, port) if _is_fabric_product(snapshot, port) else _of_kin(snapshot, port)


def _of_machine_type(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """The role from the machine type: the number of its RDMA devices, or the ids of its NICs."""
    known, function = profile(snapshot), function_of(snapshot, port)
    if known is None or function is None:
        return None
    machine = known.machine
    equal = _adapters(snapshot)[product(snapshot, port, numbered=False)] if isinstance(port, Port) else 0
    spare = known.basis == "site" and _may_be_spare(snapshot, port)  # a site counts all devices, also unused ones
    if machine.rdma and machine.rdma < 2 * equal <= 2 * machine.rdma and not spare:
        return Role(known.basis, f"{machine.name} has {machine.rdma} RDMA devices", "critical")
    number = machine.functions.get(f"{function.vendor or 0:04x}:{function.device or 0:04x}", 0)
    return Role(known.basis, f"{machine.name} has {number} NICs of this kind", "warning") if number > 1 else None


def _is_fabric_product(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the product and its place determine the role: first ports of RDMA devices and of known fabric NICs."""
    function = function_of(snapshot, port)
    if _may_be_spare(snapshot, port):
        return False
    return isinstance(port, Port) or (function is not None and nic_of(function) is not None)


def _may_be_spare(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether it is a second port of a card, and most equal ports are down."""
    alike = cohort(snapshot, port)
    return _is_second(snapshot, port) and 2 * sum(up(one) is True for one in (port, *alike)) <= len(alike) + 1


def _of_structure(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """The role from the number of equal ports beside the GPUs of the complete machine, and from their places."""
    equal, gpus = [port, *cohort(snapshot, port)], _gpus(snapshot)
    infiniband = isinstance(port, Port) and port.link_layer == "InfiniBand"
    count = len(equal)
    beside = gpus > 1 and any(_beside_a_gpu(snapshot, one) for one in equal)
    if beside and (infiniband or count > _SMALLEST_COHORT):
        return Role("capability", "NICs of this kind share PCIe switches with GPUs", "critical")
    if count <= _SMALLEST_COHORT:
        return None
    if _is_railed(count, gpus):
        return Role(COHORT, f"{count} equal ports beside {gpus} GPUs: no port is spare", "critical")
    if infiniband or gpus > 1:
        return Role(COHORT, f"one of {count} equal {'InfiniBand' if infiniband else 'RDMA'} ports", "warning")
    return _of_kin(snapshot, port)


def _of_kin(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """The role from equal ports: most of them are up."""
    alike = cohort(snapshot, port)
    working = sum(is_used(snapshot, other) for other in alike)
    if working < _SMALLEST_COHORT or 2 * working <= len(alike):
        return None
    railed = _is_railed(len(alike) + 1, gpus := _gpus(snapshot))
    why = f"{working} of the {len(alike)} other equal ports of this node are up" + (
        f", beside {gpus} GPUs" if railed else ""
    )
    return Role(COHORT, why, "critical" if railed else "warning")


def _gpus(snapshot: Snapshot) -> int:
    """The number of GPUs of the complete machine, or those on the bus if it is not known."""
    full = whole(snapshot)
    return full.count if full else len(snapshot.functions("gpu"))


def _is_railed(ports: int, gpus: int) -> bool:
    """Whether there is a port per GPU, one per two GPUs, or two per GPU. One port of eight or more may be missing."""
    return gpus > 1 and ports in (gpus // 2, gpus, 2 * gpus, *((gpus - 1,) if gpus >= _RAILS else ()))


def _is_second(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the port is not the first of its card."""
    function = function_of(snapshot, port)
    if function is not None and function_number(function.key) != "0":
        return True
    if isinstance(port, Net):
        return bool(port.port)
    adapter = snapshot.of(Rdma).get(port.device or "")
    return port.key.rpartition("/")[2] not in ("", "1") or bool(adapter and adapter.place)


def _beside_a_gpu(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the NIC and a GPU are below the same PCIe switch."""
    function = function_of(snapshot, port)
    above = ports_above(snapshot)[function.key] if function else ()
    kinds = ((snapshot.topology.find(address), carried(snapshot).get(address, ())) for address in above)
    return any(device is not None and device.kind == "upstream-port" and "gpu" in below for device, below in kinds)


@once_per_snapshot
def _adapters(snapshot: Snapshot) -> Counter[object]:
    """The number of RDMA devices of each product."""
    first = {port.device: port for port in snapshot.of(Port).values() if function_of(snapshot, port)}
    return Counter(product(snapshot, port, numbered=False) for port in first.values())


def is_unconfigured(port: Port) -> bool:
    """Whether the port waits for a subnet manager. Until then virtual functions are DOWN, others INIT.

    INIT and ARMED say that the link is up (IBTA specification 1, 7.2.7).
    """
    if port.physical_state is None:
        return port.state in ("INIT", "ARMED") and port.link_layer != "Ethernet" and not _ETHERNET.match(port.key)
    is_linked = port.physical_state == "LinkUp" and port.link_layer == "InfiniBand"
    return is_linked and port.state in ("INIT", "ARMED", "DOWN")
