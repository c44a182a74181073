"""GPU products, from gpus.toml: their links and other nominal values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Literal

import msgspec

from ..facts.gpu import Gpu
from ..facts.machine import Pci
from ..facts.pcie_rates import rated, speed_of
from ..facts.units import BytesPerSecond
from ..site.schema import Count, Positive, Text
from . import load


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One GPU product. Rates are data rates, not signalling rates, in bytes per second and one direction."""

    name: str  # "H100 SXM5 80GB"
    source: Text
    ids: tuple[str, ...]  # vendor and device: "10de:2330"
    called: tuple[str, ...] = ()  # names from its driver: "NVIDIA H100 80GB HBM3"
    pcie: Count  # generation
    width: Count = 16  # lanes
    links: Count = 0  # NVLinks, xGMI links or similar; for a bridged product, with all its bridges
    link_kind: str = "nvlink"  # "nvlink", "xgmi", "roce", "neuronlink"
    link_version: Count | None = None  # NVLink's generation
    link_rate: Positive | None = None  # of one link
    bridged: bool = False  # its links need bridges that are sold separately; without bridges no link is active
    fabric: bool = False  # its driver reports its NVSwitch fabric; without a fabric the GPU is faulty
    c2c_rate: Positive | None = None  # to its Grace processor, all links together
    peers: bool = True  # the driver allows PCIe peer access
    memory: Count | None = None  # bytes
    memory_rate: Positive | None = None
    memory_kind: Literal["hbm", "gddr", "lpddr"]

    @property
    def pcie_rate(self) -> BytesPerSecond:
        """The data rate of its complete PCIe link: bytes per second in one direction."""
        return rated(speed_of(self.pcie), self.width)


class _Gpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: tuple[Product, ...]


@cache
def products() -> tuple[Product, ...]:
    """All known products."""
    return load("gpus.toml", _Gpus).gpu


def product_of(gpu: Gpu, functions: Mapping[str, Pci]) -> Product | None:
    """The product of a GPU, by the ids of its PCI function, else by name. None: not in the catalog.

    A few products share their ids; then the name decides. A slice of a GPU (vGPU, MIG) has the ids of the whole GPU but
    not its links, so it has no product.
    """
    name, is_slice = _name_and_slice(gpu.name or "")
    if gpu.virtualization == "vGPU" or is_slice:
        return None
    function = functions.get(gpu.address or "")
    candidates = products_of(function) if function else ()
    if len(candidates) == 1:
        return candidates[0]
    by_name = _known()[1].get(name)
    return by_name if by_name in candidates or not candidates else None


def products_of(function: Pci) -> tuple[Product, ...]:
    """The products with the ids of a PCI function: none, one, or a few."""
    if function.vendor is None or function.device is None:
        return ()
    return _known()[0].get(f"{function.vendor:04x}:{function.device:04x}", ())


# Names with a vGPU or MIG profile: "grid a100-10c", "rtx6000-4q", "a100-1-5cme", "a100-sxm4-40gb mig 1g.5gb". "hl-225b"
# is a complete Gaudi.
_SLICE = re.compile(r"^grid |^(?!hl-).*-\d+[abcq](me)?$| mig( |$)")


def _plain(name: str) -> str:
    """A name without its maker, which older drivers omit."""
    return " ".join(name.casefold().split()).removeprefix("nvidia ").removeprefix("amd ")


@lru_cache(maxsize=64)
def _name_and_slice(called: str) -> tuple[str, bool]:
    """The plain name, and whether it names a slice of a GPU. Many rules ask this for each GPU."""
    name = _plain(called)
    return name, _SLICE.search(name) is not None


@cache
def _known() -> tuple[Mapping[str, tuple[Product, ...]], Mapping[str, Product]]:
    """The products by ids and by name."""
    numbers: dict[str, tuple[Product, ...]] = {}
    for product in products():
        for number in product.ids:
            numbers[number] = (*numbers.get(number, ()), product)
    return numbers, {_plain(name): product for product in products() for name in (product.name, *product.called)}
