"""Functions that GPU rules share: the PCI function of a GPU, its cohort, its name in findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from ...catalog.gpus import Product, product_of
from ...facts.gpu import Driver, Gpu, GpuLink
from ...facts.machine import Pci
from ...facts.pci_classes import NVIDIA, kind_of
from ...facts.records import Evidence, Observation
from ...facts.recovery import OF_NODE, release_of
from ...facts.units import as_bytes, as_gigabytes, as_megahertz, as_transfers
from ...inventory.snapshot import Snapshot, once_per_snapshot
from .wording import function_name, location, missed

V = TypeVar("V", bound=Hashable)
_FEWEST = 3  # with two different values there is no majority
_HOUR = 3600.0
_SMALL = 10_000  # from here on a number has a unit with a prefix


def function_of(snapshot: Snapshot, gpu: Gpu) -> Pci | None:
    """The PCI function of a GPU. None: the GPU's address or the function is not known."""
    return snapshot.of(Pci).get(gpu.address or "")


def gpu_product(snapshot: Snapshot, gpu: Gpu) -> Product | None:
    """The catalog's product of a GPU."""
    return _products(snapshot).get(gpu.key)


@once_per_snapshot
def _products(snapshot: Snapshot) -> Mapping[str, Product | None]:
    return {key: product_of(gpu, snapshot.of(Pci)) for key, gpu in snapshot.of(Gpu).items()}


def subject_of(gpu: Gpu) -> str:
    """The subject of a finding: the PCI address, which does not change if another GPU disappears; else the key."""
    return gpu.address or gpu.key


def gpu_name(snapshot: Snapshot, gpu: Gpu) -> str:
    """The name of a GPU in messages: "GPU gpu3 (NVIDIA H100 80GB HBM3)"."""
    function = function_of(snapshot, gpu)
    if function and kind_of(function) == "gpu":
        return function_name(snapshot, function)
    return f"GPU {gpu.key} ({gpu.name})" if gpu.name else f"GPU {gpu.key}"


def place_of(snapshot: Snapshot, gpu: Gpu) -> dict[str, str | int | None]:
    """Where a technician finds the GPU: slot, label, and module number on the baseboard, if known.

    PCIe cards report module number 0 or 1. 0 is left out.
    """
    function = function_of(snapshot, gpu)
    found = location(function, snapshot) if function else {}
    return {**found, "module_id": gpu.module_id} if gpu.module_id else found


def gpu_evidence(gpu: Gpu, *fields: str) -> tuple[Evidence, ...]:
    """The evidence of the fields of a GPU that have a value."""
    known = [(name, value) for name in fields if (value := getattr(gpu, name)) is not None]
    return tuple(gpu.cites.get(name, Evidence(f"{gpu.key} {name}", _plain(name, value))) for name, value in known)


_UNITS = (
    ("clock", as_megahertz),
    ("speed", as_transfers),
    ("rate", as_gigabytes),
    ("memory", as_bytes),
    ("bar1", as_bytes),
)


def _plain(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float | int) and not isinstance(value, bool) and value > _SMALL:
        words = next((words for part, words in _UNITS if part in name), None)
        return words(value) if words else f"{value:,.15g}"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def reports_any(*fields: str) -> Callable[[Snapshot, Gpu], bool]:
    """A rule's `where`: at least one of the fields has a value or could not be read."""

    def where(snapshot: Snapshot, gpu: Gpu) -> bool:
        return any(getattr(gpu, name) is not None or missed(snapshot, f"Gpu.{name}", gpu.key) for name in fields)

    return where


def gpu_cohort(snapshot: Snapshot, gpu: Gpu) -> Sequence[Gpu]:
    """The GPUs of this node with the same product name, including this GPU.

    If the text names no product at all, all its GPUs: nodes with different GPUs are rare. Empty if only others have a
    name.
    """
    named = gpus_by_name(snapshot)
    return named.get(gpu.name, ()) if gpu.name or named.keys() == {None} else ()


@once_per_snapshot
def gpus_by_name(snapshot: Snapshot) -> Mapping[str | None, Sequence[Gpu]]:
    """The GPUs by product name."""
    names: dict[str | None, list[Gpu]] = defaultdict(list)
    for gpu in snapshot.of(Gpu).values():
        names[gpu.name].append(gpu)
    return names


@once_per_snapshot
def gpu_at(snapshot: Snapshot) -> Mapping[str, Gpu]:
    """The GPUs by PCI address. Of two at one address, the first."""
    return {gpu.address: gpu for gpu in reversed([*snapshot.of(Gpu).values()]) if gpu.address}


def majority(values: Iterable[V | None]) -> V | None:
    """The value of more than half of the known values, if at least three are known."""
    known = [value for value in values if value is not None]
    best = max(known, key=known.count, default=None)
    return best if best is not None and len(known) >= _FEWEST and 2 * known.count(best) > len(known) else None


def latest(snapshot: Snapshot, gpu: Gpu, quantity: str) -> Observation | None:
    """The latest observation of a quantity of the GPU."""
    return snapshot.latest.get((gpu.key, quantity))


def oldest_in_last_hour(snapshot: Snapshot, now: Observation) -> Observation | None:
    """The oldest observation of the same quantity in the hour before `now`."""
    series = snapshot.earlier.get((now.about, now.quantity), ())
    return next((one for one in series if now.at - _HOUR <= one.at < now.at), None)


def driver_was_queried(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether a driver reported the state of the GPU. A benchmark's output has only the name of the GPU."""
    return gpu.failure is not None or any(driver.gpus is not None for driver in snapshot.of(Driver).values())


def driver_release(snapshot: Snapshot) -> int | None:
    """The release of NVIDIA's driver: 580 of "580.95.05"."""
    driver = snapshot.of(Driver).get("nvidia")
    return release_of(driver.version or driver.library) if driver else None


def asks_recovery(gpu: Gpu) -> bool:
    """Whether the driver requests a recovery action for this GPU now, other than one for the whole node."""
    return gpu.recovery not in (None, "none", *OF_NODE)


def scrubs(gpu: Gpu) -> bool:
    """Whether the utilization may be that of the driver: without persistence mode it loads for each query and scrubs
    the memory of a GPU with ECC (nvidia-smi(1), Utilization).
    """
    return gpu.persistence is False and gpu.ecc is not False


def is_lost(gpu: Gpu) -> bool:
    """Whether the driver reports that the GPU does not answer (NVML_ERROR_GPU_IS_LOST: "GPU is lost")."""
    return gpu.failure is not None and "lost" in gpu.failure.lower()


def bound_gpus(snapshot: Snapshot) -> list[Pci]:
    """The NVIDIA GPUs that the driver is bound to, without virtual functions, which belong to guests.

    The service reads the driver of PCI functions once an hour, and the functions of this driver in each cycle.
    """
    driver = snapshot.of(Driver).get("nvidia")
    now = driver.bound if driver else None
    functions = [f for f in snapshot.functions("gpu") if f.vendor == NVIDIA and not f.physfn]
    return [f for f in functions if (f.driver == "nvidia" if now is None else f.key in now)]


def absent_switches(snapshot: Snapshot) -> dict[str, list[GpuLink]]:
    """The NVLinks to switches that are not on the bus, by address of the switch."""
    links: dict[str, list[GpuLink]] = {}
    functions = snapshot.of(Pci)
    for link in snapshot.of(GpuLink).values():
        if link.remote_kind == "switch" and link.remote and link.remote not in functions:
            links.setdefault(link.remote, []).append(link)
    return links
