"""NVIDIA GPUs as their driver reports them. The driver is queried only if the kernel has bound a GPU to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeGuard

from msgspec.structs import replace

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.machine import Pci
from ...models.facts.records import NotChecked, Record
from .. import live_tools
from ..calls.timeouts import hung
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, word
from ..sysfs.fact_reader import FactReader
from .nvml_threads import seconds

BOUND = "sys/bus/pci/drivers/nvidia"
_MODULE = "sys/module/nvidia"
_CHILD = 2.0  # multiple of the driver's time limit: the child starts, reads GPUs, then pairs, and exits by itself


def read_gpus(host: Host) -> Iterator[Record]:
    """Yield the `Driver` and the changing values of each `Gpu`, `GpuLink` and counter. Nothing without NVIDIA GPUs."""
    bound = yield from _bound(host)
    if not bound:
        return
    reading = FactReader(host, Driver, "nvidia", _MODULE)
    reading.set(bound=tuple(bound))
    reading.take("version", "version", word, required=True)
    yield from reading.records()
    known: set[str] = set()
    without_address: list[str] = []
    answered = False
    for record in _state(host):
        yield record
        answered = answered or (isinstance(record, Driver) and record.gpus is not None)
        if isinstance(record, Gpu) and record.address:
            known.add(record.address)
        elif isinstance(record, Gpu) and record.failure:
            without_address.append(record.key)
        elif _concerns_all_gpus(record) and hung(record):
            yield Driver(key="nvidia", failure=record.why, failure_reason=record.reason)
    unmatched = sorted(set(bound) - known)
    if unmatched and len(unmatched) == len(without_address):  # the driver numbers GPUs in the order of their addresses
        for key, address in zip(without_address, unmatched, strict=True):
            yield Gpu(key=key, address=address)
    elif unmatched and answered and not without_address:
        drained = host.call("nvml_drain", *unmatched, deadline=_CHILD * seconds())
        yield from (record for record in drained if isinstance(record, Pci))


def _concerns_all_gpus(record: Record) -> TypeGuard[NotChecked]:
    """Whether the record explains why no GPU can be read."""
    return isinstance(record, NotChecked) and (record.what, record.subject) == ("Gpu", "node")


def _state(host: Host) -> Iterator[Record]:
    """Read NVML; if this process cannot use NVML and the driver does not hang, run nvidia-smi fallback."""
    refused: list[NotChecked] = []
    for record in host.call("nvml", deadline=_CHILD * seconds()):
        if _concerns_all_gpus(record) and not hung(record):
            refused.append(record)
        else:
            yield record
    fallback = list(live_tools.run_tool(host, "nvidia-smi")) if refused else []
    if any(isinstance(one, Gpu) for one in fallback):
        yield from fallback
        refused = [replace(one, what="NVML", detail=f"{one.detail}: nvidia-smi was asked instead") for one in refused]
    yield from refused


def read_gpus_now(host: Host) -> Iterator[Record]:
    """Yield NVLink traffic, clocks and power of each GPU. read_gpus() reports why they cannot be read."""
    if (yield from _bound(host)):
        for record in host.call("nvml_live", deadline=_CHILD * seconds()):
            if not isinstance(record, NotChecked):
                yield record


def read_gpu_wiring(host: Host) -> Iterator[Record]:
    """Yield identities, affinities, remote ends of `GpuLink`s and `GpuPair`s, which are constant until a reset."""
    if (yield from _bound(host)):
        yield from host.call("nvml_wiring", deadline=_CHILD * seconds())


def _bound(host: Host) -> Generator[NotChecked, None, list[str]]:
    """Return the PCI addresses that are bound to the driver."""
    try:
        return [name for name in host.list(BOUND) if PCI_ADDRESS.fullmatch(name)]
    except Unreadable as refusal:
        yield refusal.missed("Gpu", "node", BOUND)
        return []
