"""NVIDIA GPUs as their driver knows them. It is asked only where the kernel has a GPU that is bound to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TypeGuard

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.records import NotChecked, Record
from .. import live_tools as tools
from ..calls.timeouts import hung
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, word
from ..sysfs.fact_reader import FactReader
from .nvml_threads import seconds

BOUND = "sys/bus/pci/drivers/nvidia"
_MODULE = "sys/module/nvidia"
_CHILD = 2.0  # times what the driver may take: the child starts, asks of pairs after GPUs, and ends by itself


def read_gpus(host: Host) -> Iterator[Record]:
    """The `Driver`; what may change of each `Gpu`, its `GpuLink`s and counters. Nothing without an NVIDIA GPU."""
    bound = yield from _bound(host)
    if not bound:
        return
    reading = FactReader(host, Driver, "nvidia", _MODULE)
    reading.take("version", "version", word, required=True)
    yield from reading.records()
    known: set[str] = set()
    without_address: list[str] = []
    for said in _state(host):
        yield said
        if isinstance(said, Gpu) and said.address:
            known.add(said.address)
        elif isinstance(said, Gpu) and said.failure:
            without_address.append(said.key)
        elif _of_driver(said) and hung(said):
            yield Driver(key="nvidia", failure=said.why, failure_reason=said.reason)
    left = sorted(set(bound) - known)
    if len(left) == len(without_address):  # the driver numbers GPUs in the order of their addresses
        for key, address in zip(without_address, left, strict=True):
            yield Gpu(key=key, address=address)


def _of_driver(said: Record) -> TypeGuard[NotChecked]:
    """Whether it says why nothing is known of any GPU."""
    return isinstance(said, NotChecked) and (said.what, said.subject) == ("Gpu", "node")


def _state(host: Host) -> Iterator[Record]:
    """What NVML says; where this process cannot use it, and the driver does not hang, what nvidia-smi says."""
    refused: list[NotChecked] = []
    for said in host.call("nvml", deadline=_CHILD * seconds()):
        if _of_driver(said) and not hung(said):
            refused.append(said)
        else:
            yield said
    instead = list(tools.ask(host, "nvidia-smi")) if refused else []
    if any(isinstance(one, Gpu) for one in instead):
        yield from instead
        refused = [replace(one, what="NVML", detail=f"{one.detail}: nvidia-smi was asked instead") for one in refused]
    yield from refused


def read_gpu_wiring(host: Host) -> Iterator[Record]:
    """What lasts until a reset: identities, affinities, the other ends of `GpuLink`s, and each `GpuPair`."""
    if (yield from _bound(host)):
        yield from host.call("nvml_wiring", deadline=_CHILD * seconds())


def _bound(host: Host) -> Generator[NotChecked, None, list[str]]:
    """The PCI addresses that the driver holds."""
    try:
        return [name for name in host.list(BOUND) if PCI_ADDRESS.fullmatch(name)]
    except Unreadable as refusal:
        yield refusal.missed("Gpu", "node", BOUND)
        return []
