"""Which GPUs and NICs reach each other directly over PCIe, and over which ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from ...catalog.gpus import Product, product_of
from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Pci, Port, Rdma
from ...inventory.pci_tree import functions_above
from ...inventory.snapshot import Case, once_per_case

_FABRIC = 12.5e9  # bytes per second: slower Ethernet ports are for management


@dataclass(frozen=True, slots=True)
class Peers:
    """Two functions that talk to each other, and the ports on the way, up to what they have in common."""

    a: Pci
    b: Pci
    ports: tuple[str, ...]


def gpus(case: Case) -> list[Pci]:
    """GPUs that this system uses: virtual functions and what a guest has do not count."""
    return [f for f in case.functions("gpu") if not f.physfn and not f.lost and "vfio" not in (f.driver or "")]


def direct_gpus(case: Case) -> list[Pci]:
    """GPUs whose driver lets others reach their memory over PCIe: those for desktops it keeps to themselves."""
    return [function for function in gpus(case) if _direct(function, _products(case).get(function.key))]


def may_peer(case: Case) -> bool:
    """Whether the GPUs may reach each other's memory: over NVLink, or because no driver is known to forbid it."""
    linked = any(link.active for link in case.of(GpuLink).values()) or any(gpu.nvlinks for gpu in case.of(Gpu).values())
    return linked or may_be_reached(case)


def may_be_reached(case: Case) -> bool:
    """Whether others may reach the memory of GPUs over PCIe: no driver is known to keep it to itself."""
    if gpus(case):
        return bool(direct_gpus(case))
    drivers = case.of(Gpu).values()
    return not drivers or any(_allowed(gpu.name, product_of(gpu, {})) for gpu in drivers)


def adapters(case: Case) -> list[Rdma]:
    """RDMA devices that may be hardware: what printed a dump seldom tells their functions."""
    devices = case.of(Rdma).values()
    dumped = case.origin == "dumps"
    return [one for one in devices if one.address or (dumped and not one.key.startswith(("rxe", "siw")))]


def rdma_devices(case: Case) -> list[Rdma]:
    """RDMA devices of hardware."""
    return [one for one in case.of(Rdma).values() if one.address]


def fabric_nics(case: Case, driver: str | None = None) -> list[Pci]:
    """The functions of RDMA devices with a port that is made for jobs: InfiniBand, or Ethernet of 100 Gb/s and more."""
    ports = case.of(Port).values()
    wide = {port.device for port in ports if port.link_layer == "InfiniBand" or (port.rate or 0) >= _FABRIC}
    adapters = [one for one in rdma_devices(case) if one.key in wide and driver in (None, one.driver)]
    functions = (case.of(Pci).get(one.address or "") for one in adapters)
    return list({function.key: function for function in functions if function and not function.physfn}.values())


@once_per_case
def peers(case: Case) -> tuple[Peers, ...]:
    """Pairs of GPUs without NVLink between them, and pairs of a GPU and a NIC that have a switch in common.

    A GPU and a NIC without one go through the root complex in any case, and libraries do not let them (NCCL
    src/graph/paths.cc: GPUDirect RDMA up to PXB).
    """
    return tuple(_peers(case))


def _peers(case: Case) -> Iterator[Peers]:
    able = direct_gpus(case)
    for a, b in combinations(able, 2):
        if not _joined(case, a, b):
            yield Peers(a, b, _between(case, a, b)[0])
    for gpu in able:
        for nic in fabric_nics(case):
            ports, common = _between(case, gpu, nic)
            if common:
                yield Peers(gpu, nic, ports)


def _between(case: Case, a: Pci, b: Pci) -> tuple[tuple[str, ...], str | None]:
    """The ports above both up to what they have in common, and that; None: nothing below the root complex."""
    above_a, above_b = functions_above(a.key, case.of(Pci)), functions_above(b.key, case.of(Pci))
    common = next((port for port in above_a if port in above_b), None)
    ways = (above[: above.index(common)] if common else above for above in (above_a, above_b))
    return tuple(port for way in ways for port in way), common


def _direct(function: Pci, product: Product | None) -> bool:
    return _allowed(function.name, product)


def _allowed(name: str | None, product: Product | None) -> bool:
    return product.peers if product else "GeForce" not in (name or "")


def _joined(case: Case, a: Pci, b: Pci) -> bool:
    """Whether they have NVLink or its like between them: by their products, or by where a link of one ends."""
    one, other = _products(case).get(a.key), _products(case).get(b.key)
    if one and other and one.links and other.links and not one.bridged:
        return True
    names = {gpu.key for gpu in case.of(Gpu).values() if gpu.address == a.key}
    return any(link.active and link.gpu in names and link.remote == b.key for link in case.of(GpuLink).values())


@once_per_case
def _products(case: Case) -> Mapping[str, Product | None]:
    """The product of each GPU, by the address of its function."""
    drivers = {gpu.address: gpu for gpu in case.of(Gpu).values()}
    return {f.key: product_of(drivers.get(f.key) or Gpu(key="", address=f.key), case.of(Pci)) for f in gpus(case)}
