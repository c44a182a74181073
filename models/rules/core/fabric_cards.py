"""The RDMA devices of the fabric among all RDMA devices: storage and management ports must not hide a missing card.

A machine type counts the devices of its fabric, which are of one kind. A DGX H100 has eight ConnectX-7 with one device
each, and for storage two ConnectX-7 with two devices each (NVIDIA, DGX H100/H200 user guide).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ...facts.machine import Pci, Port, Rdma
from ...inventory.inventory import Item
from ...inventory.present import comparable, removed
from ...inventory.snapshot import Snapshot, once_per_snapshot
from .machine_expectations import profile

# BlueField adapters beside ConnectX adapters connect to storage and management networks (pci.ids; NVIDIA, DGX GB200
# user guide).
_BLUEFIELD = ("15b3:a2d2", "15b3:a2d6", "15b3:a2dc", "15b3:a2df")


class Kind(Struct, frozen=True):
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
    """The items of the earlier inventory that are RDMA devices of the fabric."""
    fabric, kinds = _fabric(snapshot), _earlier_kinds(snapshot)
    rdma = [item for item in items if item.rdma is True]
    return [item for item in rdma if fabric is None or fabric.includes(kinds[item.key])]


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
    """The kind of the fabric's cards: the most frequent one. A site file counts all devices, so it has no kind.

    Cards that were there before count, too: a machine that lost most of its fabric has more cards for storage.
    """
    known = profile(snapshot)
    if known is None or known.basis == "site" or not known.machine.rdma:
        return None
    now, earlier = _kinds(snapshot), _earlier_kinds(snapshot)
    gone = [earlier[item.key] for item in removed(snapshot, "nic") if item.rdma is True]
    counts = Counter((kind.product, kind.devices) for kind in (*now.values(), *gone))
    layers = Counter(now.values())

    def order(kind: Kind) -> tuple[bool, int, int, int, str, str]:
        number = counts[kind.product, kind.devices]
        own = kind.product not in _BLUEFIELD
        return own, number, -kind.devices, layers[kind], kind.product, kind.layer or ""

    return max({*now.values(), *gone}, key=order, default=None)


@once_per_snapshot
def _kinds(snapshot: Snapshot) -> Mapping[str, Kind]:
    """The kind of the card of each RDMA device, by address."""
    every = rdma_functions(snapshot)
    functions, cards = snapshot.of(Pci), Counter(map(_card, every))
    ports = snapshot.of(Port).values()
    devices = {one.key: one.address for one in snapshot.of(Rdma).values()}
    layers = {devices.get(port.device or ""): port.link_layer for port in ports}
    products = {one: _product(functions.get(one)) for one in every}
    earlier = Counter((_card(one), kind.product) for one, kind in _earlier_kinds(snapshot).items())
    sizes = {one: max(cards[_card(one)], earlier[_card(one), products[one]]) for one in every}
    return {one: Kind(products[one], sizes[one], layers.get(one)) for one in every}


@once_per_snapshot
def _earlier_kinds(snapshot: Snapshot) -> Mapping[str, Kind]:
    """The kind of the card of each RDMA device that was there before, by address. Its link layer is not known."""
    before = comparable(snapshot)
    rdma = [item for item in before.of("nic") if item.rdma is True] if before else []
    cards = Counter(_card(item.key) for item in rdma)
    return {item.key: Kind((item.product or "")[:9], cards[_card(item.key)], None) for item in rdma}


def _card(address: str) -> str:
    """The address without the function: one card, or one device of a card with a switch."""
    return address.rpartition(".")[0]


def _product(function: Pci | None) -> str:
    if function is None or function.vendor is None or function.device is None:
        return ""
    return f"{function.vendor:04x}:{function.device:04x}"
