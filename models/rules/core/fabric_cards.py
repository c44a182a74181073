"""The RDMA devices of the fabric among all RDMA devices: storage and management ports must not hide a missing card.

A machine type counts the devices of its fabric, which are of one kind. A DGX H100 has eight ConnectX-7 with one device
each, and for storage two ConnectX-7 with two devices each (NVIDIA, DGX H100/H200 user guide).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...facts.machine import Pci, Port, Rdma
from ...inventory.inventory import Item
from ...inventory.snapshot import Snapshot, once_per_snapshot
from .machine_expectations import profile

# BlueField adapters beside ConnectX adapters connect to storage and management networks (pci.ids; NVIDIA, DGX GB200
# user guide).
_BLUEFIELD = ("15b3:a2d2", "15b3:a2d6", "15b3:a2dc", "15b3:a2df")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cards: the ids of a function, RDMA devices per card, and the link layer of the ports."""

    product: str  # "15b3:1021"
    devices: int
    layer: str | None

    def includes(self, other: Kind) -> bool:
        """Whether another card can be of this kind. A card that lost a function has fewer devices."""
        layers = {self.layer, other.layer}
        return self.product == other.product and other.devices <= self.devices and (None in layers or len(layers) == 1)


def rdma_functions(snapshot: Snapshot) -> frozenset[str]:
    """The addresses of RDMA devices. A sub-function has the address of its function; virtual functions are left out."""
    functions = snapshot.of(Pci)
    found = {one.address for one in snapshot.of(Rdma).values() if one.address}
    return frozenset(one for one in found if not ((function := functions.get(one)) and function.physfn))


@once_per_snapshot
def fabric_functions(snapshot: Snapshot) -> frozenset[str]:
    """The addresses of the fabric's RDMA devices. Without a machine type, and for a site file, of all."""
    every = rdma_functions(snapshot)
    fabric = _fabric(snapshot)
    kinds = _kinds(snapshot)
    return frozenset(one for one in every if fabric is None or fabric.includes(kinds[one]))


def of_fabric(snapshot: Snapshot, items: Iterable[Item]) -> list[Item]:
    """The items of an earlier inventory that are RDMA devices of the fabric."""
    rdma = [item for item in items if item.rdma is True]
    fabric = _fabric(snapshot)
    if fabric is None:
        return rdma
    cards = Counter(_card(item.key) for item in rdma)
    kinds = {item.key: Kind((item.product or "")[:9], cards[_card(item.key)], None) for item in rdma}
    return [item for item in rdma if fabric.includes(kinds[item.key])]


def unbound(snapshot: Snapshot) -> list[str]:
    """The addresses of NIC functions like those of the fabric that have no RDMA device: a driver is not loaded."""
    fabric = _fabric(snapshot)
    used = {one.address for one in snapshot.of(Rdma).values()}
    return [
        one.key
        for one in snapshot.functions("nic")
        if fabric and not one.physfn and one.key not in used and _product(one) == fabric.product
    ]


@once_per_snapshot
def _fabric(snapshot: Snapshot) -> Kind | None:
    """The kind of the fabric's cards: the most frequent one. A site file counts all devices, so it has no kind."""
    known = profile(snapshot)
    if known is None or known.basis == "site" or not known.machine.rdma:
        return None
    counts = Counter(_kinds(snapshot).values())
    return max(counts, key=lambda kind: (kind.product not in _BLUEFIELD, counts[kind], -kind.devices), default=None)


@once_per_snapshot
def _kinds(snapshot: Snapshot) -> Mapping[str, Kind]:
    """The kind of the card of each RDMA device, by address."""
    every = rdma_functions(snapshot)
    functions, cards = snapshot.of(Pci), Counter(map(_card, every))
    ports = snapshot.of(Port).values()
    devices = {one.key: one.address for one in snapshot.of(Rdma).values()}
    layers = {devices.get(port.device or ""): port.link_layer for port in ports}
    return {one: Kind(_product(functions.get(one)), cards[_card(one)], layers.get(one)) for one in every}


def _card(address: str) -> str:
    """The address without the function: one card, or one device of a card with a switch."""
    return address.rpartition(".")[0]


def _product(function: Pci | None) -> str:
    if function is None or function.vendor is None or function.device is None:
        return ""
    return f"{function.vendor:04x}:{function.device:04x}"
