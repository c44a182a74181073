"""Pairs of GPUs and NICs that communicate directly over PCIe, and the ports between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from msgspec import Struct

from ...catalog.gpus import Product, product_of
from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Pci, Port, Rdma
from ...inventory.cohorts import ports_above
from ...inventory.snapshot import Snapshot, once_per_snapshot

_FABRIC = 12.5e9  # bytes per second; slower Ethernet ports are for management


class Peers(Struct, frozen=True):
    """Two functions that communicate, and the ports strictly below their common port on the path.

    Without a common port there are none: such traffic goes through the root complex, whatever ACS is set to.
    """

    a: Pci
    b: Pci
    ports: tuple[str, ...]


def gpus(snapshot: Snapshot) -> list[Pci]:
    """GPUs that this system uses, without virtual functions and GPUs that are passed through to a guest."""
    return [f for f in snapshot.functions("gpu") if not f.physfn and not f.lost and "vfio" not in (f.driver or "")]


def direct_gpus(snapshot: Snapshot) -> list[Pci]:
    """GPUs whose driver lets peers access their memory over PCIe. It does not for desktop products."""
    return [function for function in gpus(snapshot) if _direct(function, _products(snapshot).get(function.key))]


def may_peer(snapshot: Snapshot) -> bool:
    """Whether GPUs may access each other's memory: they have NVLink, or no driver is known to forbid it."""
    linked = any(link.active for link in snapshot.of(GpuLink).values()) or any(
        gpu.nvlinks for gpu in snapshot.of(Gpu).values()
    )
    return linked or may_be_reached(snapshot)


def may_be_reached(snapshot: Snapshot) -> bool:
    """Whether peers may access the memory of GPUs over PCIe. True if no driver is known to forbid it."""
    if gpus(snapshot):
        return bool(direct_gpus(snapshot))
    drivers = snapshot.of(Gpu).values()
    return not drivers or any(_allowed(gpu.name, product_of(gpu, {})) for gpu in drivers)


def adapters(snapshot: Snapshot) -> list[Rdma]:
    """RDMA devices that may be hardware. Dumps seldom show their PCI functions."""
    devices = snapshot.of(Rdma).values()
    dumped = snapshot.origin == "dumps"
    return [one for one in devices if one.address or (dumped and not one.key.startswith(("rxe", "siw")))]


def rdma_devices(snapshot: Snapshot) -> list[Rdma]:
    """RDMA devices with a PCI function."""
    return [one for one in snapshot.of(Rdma).values() if one.address]


def fabric_nics(snapshot: Snapshot, driver: str | None = None) -> list[Pci]:
    """The PCI functions of RDMA devices with a fabric port: InfiniBand, or Ethernet of at least 100 Gb/s."""
    ports = snapshot.of(Port).values()
    wide = {port.device for port in ports if port.link_layer == "InfiniBand" or (port.rate or 0) >= _FABRIC}
    adapters = [one for one in rdma_devices(snapshot) if one.key in wide and driver in (None, one.driver)]
    functions = (snapshot.of(Pci).get(one.address or "") for one in adapters)
    return list({function.key: function for function in functions if function and not function.physfn}.values())


@once_per_snapshot
def peers(snapshot: Snapshot) -> tuple[Peers, ...]:
    """Pairs of GPUs without NVLink between them, and pairs of a GPU and a NIC below a common switch.

    The path of other GPUs and NICs goes through the root complex in any case. Libraries do not use it (NCCL
    src/graph/paths.cc: GPUDirect RDMA up to PXB).
    """
    return tuple(_peers(snapshot))


def _peers(snapshot: Snapshot) -> Iterator[Peers]:
    able = direct_gpus(snapshot)
    for a, b in combinations(able, 2):
        if not _joined(snapshot, a, b):
            yield Peers(a, b, _between(snapshot, a, b)[0])
    nics = fabric_nics(snapshot)
    for gpu in able:
        for nic in nics:
            ports, common = _between(snapshot, gpu, nic)
            if common:
                yield Peers(gpu, nic, ports)


def _between(snapshot: Snapshot, a: Pci, b: Pci) -> tuple[tuple[str, ...], str | None]:
    """The ports strictly below the common port of two functions, and this port. None: they meet at the root complex."""
    above_a, above_b = ports_above(snapshot)[a.key], ports_above(snapshot)[b.key]
    common = next((port for port in above_a if port in above_b), None)
    if common is None:
        return (), None
    branches = (above[: above.index(common)] for above in (above_a, above_b))
    return tuple(port for branch in branches for port in branch), common


def _direct(function: Pci, product: Product | None) -> bool:
    return _allowed(function.name, product)


def _allowed(name: str | None, product: Product | None) -> bool:
    return product.peers if product else "GeForce" not in (name or "")


def _joined(snapshot: Snapshot, a: Pci, b: Pci) -> bool:
    """Whether a direct GPU link (NVLink or similar) joins them: by their products, or by the remote end of a link."""
    one, other = _products(snapshot).get(a.key), _products(snapshot).get(b.key)
    if one and other and one.links and other.links and not one.bridged:
        return True
    names = {gpu.key for gpu in snapshot.of(Gpu).values() if gpu.address == a.key}
    return any(link.active and link.gpu in names and link.remote == b.key for link in snapshot.of(GpuLink).values())


@once_per_snapshot
def _products(snapshot: Snapshot) -> Mapping[str, Product | None]:
    """The product of each GPU, by PCI address."""
    drivers = {gpu.address: gpu for gpu in snapshot.of(Gpu).values()}
    return {
        f.key: product_of(drivers.get(f.key) or Gpu(key="", address=f.key), snapshot.of(Pci)) for f in gpus(snapshot)
    }
