"""The window into a GPU's memory that its peers use (BAR1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ...catalog.gpus import Product, products_of
from ...facts.gpu import Gpu, GpuPair
from ...facts.machine import Node, Pci
from ...facts.pci_classes import NVIDIA, is_arc, kind_of
from ...facts.records import Evidence
from ...facts.units import MIB, as_bytes
from ...inventory.cohorts import strict_majority
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Basis, Finding
from ..core.claims import Claim, Support
from ..core.gpus import (
    function_of,
    gpu_at,
    gpu_cohort,
    gpu_evidence,
    gpu_name,
    gpu_product,
    majority,
    place_of,
    subject_of,
)
from ..core.rule import Rule
from ..core.wording import cited, function_name, location

_SMALL = 256 * MIB  # the size without Resizable BAR, or if the firmware assigns no addresses above 4 GB
_SHARE = 0.5  # of the memory: sizes of windows are powers of two
WINDOW = "memory window (BAR1)"
_LARGE = 8 << 30  # bytes of memory: a GPU with less is a display adapter


class Window(Struct, frozen=True):
    """The window of one GPU. Sizes in bytes."""

    subject: str
    name: str
    size: int
    largest: int | None  # the maximum of the device
    memory: int
    cohort: tuple[int | None, ...]  # the windows of equal GPUs of the node
    product: Product | None
    place: dict[str, str | int | None]
    evidence: tuple[Evidence, ...]
    used: bool  # peers have no other path


def is_nvidia_gpu(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVIDIA GPUs on the PCI bus, without virtual functions."""
    return function.vendor == NVIDIA and kind_of(function) == "gpu" and not function.physfn


def of_function(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The window size from the PCI bus."""
    gpu = gpu_at(snapshot).get(function.key)
    alike = products_of(function)
    product = gpu_product(snapshot, gpu) if gpu else alike[0] if alike else None
    equal = _by_ids(snapshot)[function.vendor, function.device]
    others = [other for other in equal if other is not function]
    memory = (gpu.memory if gpu else None) or (product.memory if product else None)
    if function.bar1 and memory:
        cites = cited(function, "bar1", "bar1_max")
        place = place_of(snapshot, gpu) if gpu else location(function)
        yield from _small(
            Window(
                function.key,
                function_name(snapshot, function),
                function.bar1,
                function.bar1_max,
                memory,
                tuple(f.bar1 for f in others),
                product,
                place,
                cites,
                _used(snapshot, gpu, len(others)),
            )
        )


@once_per_snapshot
def _by_ids(snapshot: Snapshot) -> Mapping[tuple[int | None, int | None], Sequence[Pci]]:
    """The physical functions by vendor and device."""
    found: dict[tuple[int | None, int | None], list[Pci]] = defaultdict(list)
    for function in snapshot.of(Pci).values():
        if not function.physfn:
            found[function.vendor, function.device].append(function)
    return found


def may_need_window(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVIDIA GPUs, and functions of dumps whose kind the text does not show."""
    unknown = snapshot.origin == "dumps" and function.vendor is None and function.pci_class is None
    return unknown or is_nvidia_gpu(snapshot, function)


def without_addresses(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The window has no addresses: the machine has no room for it. The driver then refuses the GPU or its peers."""
    if function.bar1 == 0 and not function.lost:
        name = function_name(snapshot, function) if function.vendor else "a PCI function"
        yield Finding(
            code="pcie-bar1-small",
            severity="warning",
            subject=function.key,
            subject_name=name,
            message=f"{name} has no addresses for its memory window (BAR1): the machine assigned none",
            expected="assigned",
            observed="unassigned",
            cause="Above 4G Decoding is switched off in the firmware setup, or the root complex has too little space",
            location=location(function),
            evidence=cited(function, "bar1"),
        )
    elif function.vendor is None and function.bar1 == _SMALL and (function.bar1_max or 0) >= _LARGE:
        yield Finding(
            code="pcie-bar1-small",
            severity="info",
            confidence="likely",
            subject=function.key,
            message=f"a PCI function has a memory window (BAR1) of {as_bytes(_SMALL)}, and can have "
            f"{as_bytes(function.bar1_max or 0)}",
            expected=function.bar1_max,
            observed=function.bar1,
            unit="bytes",
            cause="Above 4G Decoding or Resizable BAR is switched off in the firmware setup",
            evidence=cited(function, "bar1", "bar1_max"),
        )


def is_intel_card(snapshot: Snapshot, function: Pci) -> bool:
    """Select Intel's cards."""
    return is_arc(function)


def of_intel_card(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The window is that of a card without Resizable BAR, which all cards of the series have and need."""
    if function.bar1 == _SMALL:
        yield Finding(
            code="pcie-bar1-small",
            severity="warning",
            confidence="likely",
            subject=function.key,
            subject_name=function_name(snapshot, function),
            message=f"{function_name(snapshot, function)} shows {_SMALL // MIB} MiB of its memory (BAR2)",
            observed=function.bar1,
            unit="bytes",
            expected_source="Intel: Arc cards need Resizable BAR",
            cause="Resizable BAR or Above 4G Decoding is switched off in the firmware setup, or the board has neither",
            location=location(function),
            evidence=cited(function, "bar1"),
        )


def of_driver(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The window size from the driver, if the PCI bus does not show it."""
    function, others = (
        function_of(snapshot, gpu),
        [other for other in gpu_cohort(snapshot, gpu) if other.key != gpu.key],
    )
    if gpu.bar1 and gpu.memory and not (function and function.bar1):
        yield from _small(
            Window(
                subject_of(gpu),
                gpu_name(snapshot, gpu),
                gpu.bar1,
                None,
                gpu.memory,
                tuple(other.bar1 for other in others),
                gpu_product(snapshot, gpu),
                place_of(snapshot, gpu),
                gpu_evidence(gpu, "bar1", "memory"),
                _used(snapshot, gpu, len(others)),
            )
        )


def _used(snapshot: Snapshot, gpu: Gpu | None, others: int) -> bool:
    """Whether GPUs need the window: on bare metal, between equal GPUs without NVLink or working peer access."""
    node = snapshot.of(Node).get("node")
    pairs = [pair for pair in snapshot.of(GpuPair).values() if gpu and gpu.key in (pair.a, pair.b)]
    reached = bool(gpu and gpu.nvlinks) or (bool(pairs) and all(pair.read == "ok" for pair in pairs))
    return not (node and node.virtual) and not reached and (others > 0 or snapshot.origin == "dumps")


def window_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of the windows of all GPUs whose driver supports peers. Slices of a GPU have another window."""
    for gpu in snapshot.of(Gpu).values():
        product, size = gpu_product(snapshot, gpu), _size(snapshot, gpu)
        if (
            size
            and (gpu.memory or _LARGE) >= _LARGE
            and gpu.virtualization != "vGPU"
            and (not product or product.peers)
        ):
            most = strict_majority(_size(snapshot, other) for other in gpu_cohort(snapshot, gpu))
            supports = (
                [Support("cohort", most, f"most equal GPUs of this node: {most // MIB:,.0f} MiB")] if most else []
            )
            if product and (least := _least(product)):
                supports.append(Support("product", least, f"{product.name}: a GPU with HBM shows its whole memory"))
            supports.sort(key=lambda one: -one.least)
            yield Claim(
                group="states", subject=subject_of(gpu), quantity=WINDOW, observed=size, supports=tuple(supports)
            )


def _size(snapshot: Snapshot, gpu: Gpu) -> int | None:
    function = function_of(snapshot, gpu)
    return (function.bar1 if function else None) or gpu.bar1


def _least(product: Product | None) -> float | None:
    """GPUs with HBM have a window as large as their memory (nvidia-smi -q of V100, A100, H100, GH200)."""
    return _SHARE * product.memory if product and product.memory and product.memory_kind == "hbm" else None


def _below_product(window: Window) -> bool:
    least = _least(window.product)
    return least is not None and window.size < least


def _small(window: Window) -> Iterator[Finding]:
    """The window is far smaller than the memory. A warning if equal GPUs have more or the GPU supports more.

    256 MiB is by design on T4 and on workstation cards, whose peers use another path (nvidia-smi of T4 and RTX A5000
    in influxdata/telegraf). It does not matter on GeForce, whose driver has no peer access. There it is "info".
    NICs use the window, too (GPUDirect RDMA). So equal GPUs and a product with HBM count also beside NVLink.
    """
    most, basis, source = _could(window)
    if window.memory < _LARGE or window.size >= window.memory or window.size >= most:
        return
    if not window.used and basis != COHORT and not _below_product(window):
        return
    if basis is None and window.size > _SMALL:
        return
    product = window.product
    of_product = basis == "capability" and product is not None and product.peers
    sure = basis == COHORT or of_product or _below_product(window)
    yield Finding(
        code="pcie-bar1-small",
        severity="warning" if sure else "info",
        confidence="likely" if sure else "certain",
        subject=window.subject,
        subject_name=window.name,
        message=f"{window.name} shows its peers {window.size // MIB:,.0f} MiB of its {window.memory // MIB:,.0f} MiB "
        "(BAR1)" + (f"; {source}: {most // MIB:,.0f} MiB" if basis else ""),
        expected=most,
        observed=window.size,
        unit="bytes",
        basis=basis,
        expected_source=source,
        cause="Resizable BAR or Above 4G Decoding is switched off in the firmware setup, or the GPU has no more",
        location=window.place,
        evidence=window.evidence or (Evidence("BAR1", f"{window.size // MIB} MiB"),),
    )


def _could(window: Window) -> tuple[int, Basis | None, str]:
    """The size that the window could have, its basis, and the source as text. If not known: the memory size."""
    most = majority((*window.cohort, window.size))
    if most and most > window.size:
        return most, COHORT, "most equal GPUs of this node"
    if (product := window.product) and _below_product(window):
        return product.memory or window.memory, "capability", f"a {product.name} shows its whole memory"
    if window.largest is not None:
        return window.largest, "capability", "as large as it can be"
    return window.memory, None, "its memory"


RULES = (
    Rule("pcie-bar1-small", Pci, ("bar1",), of_function, is_nvidia_gpu),
    Rule("pcie-bar1-small", Pci, ("bar1",), without_addresses, may_need_window),
    Rule("pcie-bar1-small", Pci, ("bar1",), of_intel_card, is_intel_card),
    Rule("pcie-bar1-small", Gpu, ("bar1", "memory"), of_driver),
)
