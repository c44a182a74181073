"""GPU products, from gpus.toml: which links one has, and what is normal for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from ..facts.gpu import Gpu
from ..facts.machine import Pci
from ..site.schema import Count, Positive, Text
from . import load


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One GPU product. Rates in bytes per second and one direction, of bytes rather than signals."""

    name: str  # "H100 SXM5 80GB"
    source: Text
    ids: tuple[str, ...]  # vendor and device: "10de:2330"
    called: tuple[str, ...] = ()  # as its driver calls it: "NVIDIA H100 80GB HBM3"
    pcie: Count  # generation
    width: Count = 16  # lanes
    links: Count = 0  # NVLink, xGMI or another of its kind; of a bridged product, with all its bridges
    link_kind: str = "nvlink"  # "nvlink", "xgmi", "roce", "neuronlink"
    link_version: Count | None = None  # NVLink's generation
    link_rate: Positive | None = None  # of one link
    bridged: bool = False  # its links run over bridges that are sold apart: without one, none of them is active
    fabric: bool = False  # its driver says how it joined an NVSwitch fabric: one that has not is broken
    c2c_rate: Positive | None = None  # to its Grace processor, all links together
    peers: bool = True  # the driver lets it reach its peers over PCIe
    memory: Count | None = None  # bytes
    memory_rate: Positive | None = None
    memory_kind: Literal["hbm", "gddr"]


class _Gpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: tuple[Product, ...]


@cache
def products() -> tuple[Product, ...]:
    """All products that are known."""
    return load("gpus.toml", _Gpus).gpu


def product_of(gpu: Gpu, functions: Mapping[str, Pci]) -> Product | None:
    """The product that a GPU is: by the numbers of its PCI function, else by its name. None: not in the catalog.

    A few products share their numbers, and the name says which of them it is. A slice of a GPU (vGPU, MIG) has the
    numbers of the whole, and not its links: it is no product.
    """
    name = _plain(gpu.name or "")
    if gpu.virtualization == "vGPU" or _SLICE.search(name):
        return None
    function = functions.get(gpu.address or "")
    alike = products_of(function) if function else ()
    if len(alike) == 1:
        return alike[0]
    named = _known()[1].get(name)
    return named if named in alike or not alike else None


def products_of(function: Pci) -> tuple[Product, ...]:
    """The products that have the numbers of a PCI function: none, one, or a few that share them."""
    if function.vendor is None or function.device is None:
        return ()
    return _known()[0].get(f"{function.vendor:04x}:{function.device:04x}", ())


# "grid a100-10c", "rtx6000-4q", "a100-1-5cme", "a100-sxm4-40gb mig 1g.5gb": profiles of vGPU and MIG in a name.
# "hl-225b" is a whole Gaudi.
_SLICE = re.compile(r"^grid |^(?!hl-).*-\d+[abcq](me)?$| mig( |$)")


def _plain(name: str) -> str:
    """A name without its maker, which older drivers leave out."""
    return " ".join(name.casefold().split()).removeprefix("nvidia ").removeprefix("amd ")


@cache
def _known() -> tuple[Mapping[str, tuple[Product, ...]], Mapping[str, Product]]:
    """The products by number and by name."""
    numbers: dict[str, tuple[Product, ...]] = {}
    for product in products():
        for number in product.ids:
            numbers[number] = (*numbers.get(number, ()), product)
    return numbers, {_plain(name): product for product in products() for name in (product.name, *product.called)}
