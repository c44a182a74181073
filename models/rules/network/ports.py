"""A port of a NIC, as an RDMA port or a network device: its function, its cohort, and its role in the fabric."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from ...facts.machine import Event, Net, Pci, Port, Rdma
from ...facts.pci_classes import function_number
from ...inventory.present import earlier_item
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Basis, Severity
from ..core.log_history import events
from ..core.wording import function_name

AnyPort: TypeAlias = "Port | Net"
_SMALLEST_COHORT = 2
# The port name of a representor: the host side of a virtual function (Documentation/networking/switchdev.rst).
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+(vf|sf)\d+")


@dataclass(frozen=True, slots=True)
class Role:
    """Why a port belongs to the fabric, and the severity if it does not work."""

    basis: Basis
    why: str
    severity: Severity


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


def rate_of(snapshot: Snapshot, port: AnyPort) -> float | None:
    """Bytes per second. RoCE uses the speed of the network device: some kernels show at most 100 Gb/s for RDMA."""
    if isinstance(port, Net):
        return port.speed
    network = network_of(snapshot, port) if port.link_layer == "Ethernet" else None
    return network.speed if network and network.speed else port.rate


def role_of(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """Why the port belongs to the fabric. None: not known, and it may be a spare port."""
    names = [port.key, *([port.device or ""] if isinstance(port, Port) else [])]
    if any(fnmatchcase(name, pattern) for name in names for pattern in snapshot.site.fabric):
        return Role("site", "the site file names it as fabric", "critical")
    if isinstance(port, Port) and port.link_layer == "InfiniBand" and _is_unconfigured(port):
        return Role("capability", "its cable is in and its link up: no subnet manager has configured it", "critical")
    item = earlier_item(snapshot, "port", port.key)
    if item and item.accepted and item.state == "ACTIVE":
        return Role("baseline", "it was up when the node was accepted", "critical")
    alike = cohort(snapshot, port)
    working = [other for other in alike if up(other)]
    if len(working) < _SMALLEST_COHORT or 2 * len(working) <= len(alike):
        return None
    # One port per GPU, one port per two GPUs, or two ports per GPU: then no port is spare.
    gpus = len(snapshot.functions("gpu"))
    railed = gpus > 1 and len(alike) + 1 in (gpus // 2, gpus, 2 * gpus)
    why = f"{len(working)} of {len(alike)} equal ports of this node are up"
    return Role("kin", why + (f", beside {gpus} GPUs" if railed else ""), "critical" if railed else "warning")


def cohort(snapshot: Snapshot, port: AnyPort) -> list[AnyPort]:
    """The other ports of the same product with the same port number. Ports 1 and 2 of a card are not equal."""
    return [other for other in _by_product(snapshot).get(_product(snapshot, port), ()) if other.key != port.key]


def network_of(snapshot: Snapshot, port: AnyPort) -> Net | None:
    """The network device of the port."""
    return snapshot.of(Net).get(port.netdev or "") if isinstance(port, Port) else port


def function_of(snapshot: Snapshot, port: AnyPort) -> Pci | None:
    """The PCI function of the port."""
    if isinstance(port, Net):
        return snapshot.of(Pci).get(port.address or "")
    adapter = snapshot.of(Rdma).get(port.device or "")
    return snapshot.of(Pci).get(adapter.address or "") if adapter else None


def adapter_name(snapshot: Snapshot, port: AnyPort) -> str | None:
    """The name of the port's NIC in messages."""
    function = function_of(snapshot, port)
    return function_name(snapshot, function) if function else None


def downs_of(snapshot: Snapshot) -> Mapping[str, list[Event]]:
    """The "link down" events of the kernel log, by port, without virtual functions."""
    ports: dict[str, list[Event]] = defaultdict(list)
    for event in events(snapshot, "link down"):
        function = snapshot.of(Pci).get(event.subject or "")
        if not (function and function.physfn):
            ports[_port_key(snapshot, event)].append(event)
    return ports


def _port_key(snapshot: Snapshot, event: Event) -> str:
    """The key of the event's port. A network device that shares an RDMA port has the key of the RDMA port."""
    if event.link is not None:
        return f"{event.name}/{event.link}"
    name = event.name or ""
    if name not in snapshot.of(Net):
        name = next((net.key for net in snapshot.of(Net).values() if net.address == event.subject), name)
    return next((port.key for port in snapshot.of(Port).values() if port.netdev == name), name or str(event.subject))


def _of_an_adapter(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether a port in a dump is hardware although its function is unknown: it has a type, board ID or InfiniBand."""
    adapter = (
        snapshot.of(Rdma).get(port.device or "") if isinstance(port, Port) and snapshot.origin == "dumps" else None
    )
    wired = port.link_layer == "InfiniBand" if isinstance(port, Port) else False  # no software device uses it
    return adapter is not None and adapter.address is None and bool(adapter.hca_type or adapter.board_id or wired)


def _is_unconfigured(port: Port) -> bool:
    """Whether the port waits for a subnet manager. Until then virtual functions are DOWN, others INIT."""
    return port.physical_state == "LinkUp" and port.state in ("INIT", "ARMED", "DOWN")


def _product(snapshot: Snapshot, port: AnyPort) -> tuple[object, ...] | None:
    function = function_of(snapshot, port)
    if function is None:
        adapter = snapshot.of(Rdma).get(port.device or "") if isinstance(port, Port) else None
        number = port.key.rpartition("/")[2]
        return ("adapter", adapter.hca_type, adapter.board_id, adapter.place, number) if adapter else None
    ids = (function.vendor, function.device, function.subdevice, function.physfn is None, function_number(function.key))
    if isinstance(port, Net):
        return *ids, "net", port.port
    adapter = snapshot.of(Rdma).get(port.device or "")
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
