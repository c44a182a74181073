"""NVIDIA GPUs as their driver knows them. It is asked only where the kernel has a GPU that is bound to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ..models.gpu_facts import Driver, Gpu
from ..models.said import NotChecked, Said
from .hang import hung
from .host import Host, Unreadable
from .parsers import word
from .pci_links import ADDRESS
from .reading import Reading

_BOUND = "sys/bus/pci/drivers/nvidia"
_MODULE = "sys/module/nvidia"
_PERSISTENCED = "run/nvidia-persistenced"
# Twice what the driver itself may take (nvml_asking.py), which is more where GPUs have to be initialized first.
_DEADLINE, _DEADLINE_TO_WAKE = 10.0, 50.0


def read_gpus(host: Host) -> Iterator[Said]:
    """The `Driver`; what may change of each `Gpu`, its `GpuLink`s and counters. Nothing without an NVIDIA GPU."""
    bound = yield from _bound(host)
    if not bound:
        return
    reading = Reading(host, Driver, "nvidia", _MODULE)
    reading.take("version", "version", word, required=True)
    yield from reading.said()
    known: set[str] = set()
    without_address: list[str] = []
    for said in host.call("nvml", deadline=_deadline(host)):
        yield said
        if isinstance(said, Gpu) and said.address:
            known.add(said.address)
        elif isinstance(said, Gpu) and said.failure:
            without_address.append(said.key)
        elif isinstance(said, NotChecked) and hung(said):
            yield Driver(key="nvidia", failure=said.why)
    left = sorted(set(bound) - known)
    if len(left) == len(without_address):  # the driver numbers GPUs in the order of their addresses
        for key, address in zip(without_address, left, strict=True):
            yield Gpu(key=key, address=address)


def read_gpu_wiring(host: Host) -> Iterator[Said]:
    """What lasts until a reset: identities, affinities, the other ends of `GpuLink`s, and each `GpuPair`."""
    if (yield from _bound(host)):
        yield from host.call("nvml_wiring", deadline=_deadline(host))


def _bound(host: Host) -> Generator[NotChecked, None, list[str]]:
    """The PCI addresses that the driver holds."""
    try:
        return [name for name in host.list(_BOUND) if ADDRESS.fullmatch(name)]
    except Unreadable as refusal:
        yield NotChecked(what="Gpu", subject="node", why=f"{_BOUND}: {refusal.why}", how=refusal.how)
        return []


def _deadline(host: Host) -> float:
    """In seconds."""
    try:
        return _DEADLINE if host.list(_PERSISTENCED) else _DEADLINE_TO_WAKE
    except Unreadable:
        return _DEADLINE_TO_WAKE
