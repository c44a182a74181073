"""A port of a NIC, as an RDMA port or a network device: its function, its cohort, and its role in the fabric."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import wraps
from typing import TypeAlias, TypeVar

from msgspec import Struct

from ...catalog.nics import nic_of
from ...facts.machine import Net, Pci, Port, Rdma
from ...facts.pci_classes import function_number
from ...inventory.cohorts import carried, ports_above
from ...inventory.inventory import UP
from ...inventory.present import earlier_item
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Basis, Severity
from ..core.machine_expectations import profile
from ..core.wording import function_name
from ..gpu.missing import whole

AnyPort: TypeAlias = "Port | Net"
T = TypeVar("T")
_SMALLEST_COHORT = 2
_RAILS = 8  # GPUs of a machine with one NIC each, of which one may be missing
# The port name of a representor: the host side of a virtual function (Documentation/networking/switchdev.rst).
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+(vf|sf)\d+")


class Role(Struct, frozen=True):
    """Why a port belongs to the fabric, and the severity if it does not work."""

    basis: Basis
    why: str
    severity: Severity


def once_per_port(compute: Callable[[Snapshot, AnyPort], T]) -> Callable[[Snapshot, AnyPort], T]:
    """Decorator: compute the result once per snapshot and port."""

    @once_per_snapshot
    def results(snapshot: Snapshot) -> dict[tuple[type, str], T]:
        return {}

    @wraps(compute)
    def cached(snapshot: Snapshot, port: AnyPort) -> T:
        known, key = results(snapshot), (type(port), port.key)
        if key not in known:
            known[key] = compute(snapshot, port)
        return known[key]

    return cached


@once_per_port
def real(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the port is hardware with a meaningful state. A network device that shares an RDMA port is not.

    The efa driver hard-codes ACTIVE and LinkUp (drivers/infiniband/hw/efa/efa_verbs.c, efa_query_port). Software
    devices (rxe, siw) have no port of their own. Virtual functions and their representors are up only while in use.
    Ports of a NIC that does not answer are covered by pcie/not_responding.py.
    """
    function = function_of(snapshot, port)
    if (function is None and not _of_an_adapter(snapshot, port)) or (function and (function.physfn or function.lost)):
        return False
    if isinstance(port, Port):
        adapter = snapshot.of(Rdma).get(port.device or "")
        return adapter is not None and adapter.driver != "efa"
    if port.link_type != "ethernet" or _REPRESENTOR.fullmatch(port.port_name or ""):
        return False
    return port.key not in _shared(snapshot)


def up(port: AnyPort) -> bool | None:
    """Whether the port carries traffic. None: not known."""
    if isinstance(port, Net):
        return False if port.enabled is False else port.carrier
    return None if port.state is None else port.state == "ACTIVE"


def is_used(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the port is up. A topology file of NCCL has rates and no states; NCCL writes only ports that are up."""
    state = up(port)
    return state is True or (
        state is None and snapshot.origin == "dumps" and isinstance(port, Port) and bool(port.rate)
    )


def rate_of(snapshot: Snapshot, port: AnyPort) -> float | None:
    """Bytes per second. RoCE uses the speed of the network device: some kernels show at most 100 Gb/s for RDMA."""
    if isinstance(port, Net):
        return port.speed
    network = network_of(snapshot, port) if port.link_layer == "Ethernet" else None
    return network.speed if network and network.speed else port.rate


@once_per_port
def role_of(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """The role follows from the site file, the machine type, the inventory, the products and their places, not from the
    ports and GPUs that work now. So the same fault has the same severity whatever else is broken. Two kinds of ports
    have no such evidence: second ports, and Ethernet ports without RDMA. Those in use show whether these are.
    """
    names = [port.key, *([port.device or ""] if isinstance(port, Port) else [])]
    if any(fnmatchcase(name, pattern) for name in names for pattern in snapshot.site.fabric):
        return Role("site", "the site file names it as fabric", "critical")
    if isinstance(port, Port) and port.link_layer == "InfiniBand" and _is_unconfigured(port):
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
    equal = _adapters(snapshot)[_product(snapshot, port, numbered=False)] if isinstance(port, Port) else 0
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
        return Role("kin", f"{count} equal ports beside {gpus} GPUs: no port is spare", "critical")
    if infiniband or gpus > 1:
        return Role("kin", f"one of {count} equal {'InfiniBand' if infiniband else 'RDMA'} ports", "warning")
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
    return Role("kin", why, "critical" if railed else "warning")


def _gpus(snapshot: Snapshot) -> int:
    full = whole(snapshot)  # the complete machine, if it is known
    return full.count if full else len(snapshot.functions("gpu"))


def _is_railed(ports: int, gpus: int) -> bool:
    """Whether there is a port per GPU, one per two GPUs, or two per GPU. One port of eight or more may be missing."""
    return gpus > 1 and ports in (gpus // 2, gpus, 2 * gpus, *((gpus - 1,) if gpus >= _RAILS else ()))


def _is_second(snapshot: Snapshot, port: AnyPort) -> bool:
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
    return Counter(_product(snapshot, port, numbered=False) for port in first.values())


@once_per_port
def cohort(snapshot: Snapshot, port: AnyPort) -> Sequence[AnyPort]:
    """The other ports of the same product with the same port number. Ports 1 and 2 of a card are not equal."""
    alike = _by_product(snapshot).get(_product(snapshot, port), ())
    return [other for other in alike if other.key != port.key]


def network_of(snapshot: Snapshot, port: AnyPort) -> Net | None:
    """The network device of the port."""
    return snapshot.of(Net).get(port.netdev or "") if isinstance(port, Port) else port


def function_of(snapshot: Snapshot, port: AnyPort) -> Pci | None:
    """The PCI function of the port."""
    if isinstance(port, Net):
        return snapshot.of(Pci).get(port.address or "")
    return _of_adapters(snapshot).get(port.device or "")


@once_per_snapshot
def _of_adapters(snapshot: Snapshot) -> Mapping[str, Pci]:
    """The PCI functions of the RDMA devices."""
    functions = snapshot.of(Pci)
    return {key: found for key, one in snapshot.of(Rdma).items() if (found := functions.get(one.address or ""))}


def shares_rdma_port(snapshot: Snapshot, net: Net) -> bool:
    """Whether an RDMA port reports for the network device: the same port, or IP over InfiniBand."""
    if net.key in _shared(snapshot):
        return True
    over = net.link_type == "infiniband" and net.address is not None
    return over and any(one.address == net.address for one in snapshot.of(Rdma).values())


def adapter_name(snapshot: Snapshot, port: AnyPort) -> str | None:
    """The name of the port's NIC in messages."""
    function = function_of(snapshot, port)
    return function_name(snapshot, function) if function else None


def _of_an_adapter(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether a port in a dump is hardware although its function is unknown: it has a type, board ID or InfiniBand."""
    adapter = (
        snapshot.of(Rdma).get(port.device or "") if isinstance(port, Port) and snapshot.origin == "dumps" else None
    )
    wired = port.link_layer == "InfiniBand" if isinstance(port, Port) else False  # no software device uses it
    return adapter is not None and adapter.address is None and bool(adapter.hca_type or adapter.board_id or wired)


def _is_unconfigured(port: Port) -> bool:
    # Until a subnet manager configures them, virtual functions are DOWN, others INIT
    return port.physical_state == "LinkUp" and port.state in ("INIT", "ARMED", "DOWN")


def _product(snapshot: Snapshot, port: AnyPort, numbered: bool = True) -> tuple[object, ...] | None:
    function = function_of(snapshot, port)
    if function is None:
        adapter = snapshot.of(Rdma).get(port.device or "") if isinstance(port, Port) else None
        number = port.key.rpartition("/")[2]
        return ("adapter", adapter.hca_type, adapter.board_id, adapter.place, number) if adapter else None
    ids: tuple[object, ...] = (function.vendor, function.device, function.subdevice, function.physfn is None)
    adapter = snapshot.of(Rdma).get(port.device or "") if isinstance(port, Port) else None
    if not numbered:
        return *ids, adapter.board_id if adapter else None
    ids = (*ids, function_number(function.key))
    if isinstance(port, Net):
        return *ids, "net", port.port
    return *ids, adapter.board_id if adapter else None, port.key.rpartition("/")[2]


@once_per_snapshot
def _by_product(snapshot: Snapshot) -> Mapping[object, list[AnyPort]]:
    """The ports of each product."""
    products: dict[object, list[AnyPort]] = defaultdict(list)
    everything: list[AnyPort] = [*snapshot.of(Port).values(), *snapshot.of(Net).values()]
    for port in everything:
        if real(snapshot, port):
            products[_product(snapshot, port)].append(port)
    return products


@once_per_snapshot
def _shared(snapshot: Snapshot) -> frozenset[str | None]:
    """The network devices that are covered by RDMA ports."""
    return frozenset(port.netdev for port in snapshot.of(Port).values() if real(snapshot, port))
