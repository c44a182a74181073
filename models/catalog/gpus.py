"""GPU products, from gpus.toml: which links one has, and what is normal for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ..facts import Pci
from ..gpu_facts import Gpu
from . import packaged


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One GPU product. Rates in bytes per second and one direction, of bytes rather than signals."""

    name: str  # "H100 SXM5 80GB"
    source: str
    ids: tuple[str, ...]  # vendor and device: "10de:2330"
    called: tuple[str, ...] = ()  # as its driver calls it: "NVIDIA H100 80GB HBM3"
    pcie: int  # generation
    width: int = 16  # lanes
    links: int = 0  # NVLink, xGMI or another of its kind
    link_kind: str = "nvlink"  # "nvlink", "xgmi", "roce", "neuronlink"
    link_version: int | None = None  # NVLink's generation
    link_rate: float | None = None  # of one link
    bridged: bool = False  # its links run over bridges that are sold apart: without one, none of them is active
    fabric: bool = False  # its driver says how it joined an NVSwitch fabric: one that has not is broken
    c2c_rate: float | None = None  # to its Grace processor, all links together
    peers: bool = True  # the driver lets it reach its peers over PCIe
    memory: int | None = None  # bytes
    memory_rate: float | None = None


class _Gpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: tuple[Product, ...]


@cache
def products() -> tuple[Product, ...]:
    """All products that are known."""
    return msgspec.toml.decode(packaged("gpus.toml"), type=_Gpus).gpu


def product_of(gpu: Gpu, functions: Mapping[str, Pci]) -> Product | None:
    """The product that a GPU is: by the numbers of its PCI function, else by its name. None: not in the catalog."""
    function = functions.get(gpu.address or "")
    numbers = f"{function.vendor:04x}:{function.device:04x}" if function and function.vendor and function.device else ""
    by_number, by_name = _known()
    return by_number.get(numbers) or by_name.get(gpu.name or "")


@cache
def _known() -> tuple[Mapping[str, Product], Mapping[str, Product]]:
    return (
        {number: product for product in products() for number in product.ids},
        {name: product for product in products() for name in product.called},
    )
