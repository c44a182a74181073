"""A port of a NIC, as an RDMA port or a network device: its state, its rate, its function, and its cohort."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TypeAlias, TypeVar

from ...facts.machine import Net, Pci, Port, Rdma
from ...facts.pci_classes import function_number
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ..core.wording import function_name

AnyPort: TypeAlias = "Port | Net"
T = TypeVar("T")
# The port name of a representor: the host side of a virtual function (Documentation/networking/switchdev.rst).
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+(vf|sf)\d+")


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
def cohort(snapshot: Snapshot, port: AnyPort) -> Sequence[AnyPort]:
    """The other ports of the same product with the same port number. Ports 1 and 2 of a card are not equal."""
    alike = _by_product(snapshot).get(product(snapshot, port), ())
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


def product(snapshot: Snapshot, port: AnyPort, numbered: bool = True) -> tuple[object, ...] | None:
    """The product and the number of the port on its card; without `numbered` only the product. None: not known."""
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
            products[product(snapshot, port)].append(port)
    return products


@once_per_snapshot
def _shared(snapshot: Snapshot) -> frozenset[str | None]:
    """The network devices that are covered by RDMA ports."""
    return frozenset(port.netdev for port in snapshot.of(Port).values() if real(snapshot, port))
