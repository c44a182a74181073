"""The call `nvml_use`: current use of NVIDIA GPUs, read before a measurement. It runs in a child process."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.records import Observation, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS
from .gpus import BOUND
from .nvml_reader import NvmlReader
from .nvml_threads import seconds, usable_gpus


def gpu_use(host: Host) -> list[Observation] | None:
    """Return compute processes (count), memory in use (bytes) and utilization (ratio) of each GPU.

    Returns None if there are GPUs but the driver reports none of them. Unreported values are left out: the utilization
    of a GPU with MIG instances, the processes in containers.
    """
    try:
        bound = any(map(PCI_ADDRESS.fullmatch, host.list(BOUND)))
    except Unreadable:
        bound = True
    records = host.call("nvml_use", deadline=2 * seconds()) if bound else ()
    return [one for one in records if isinstance(one, Observation)] or (None if bound else [])


def use() -> Iterator[Record]:
    """Yield the observations of all GPUs; nothing if the driver cannot be used (nvml.py reports that)."""
    for reader in usable_gpus(_gpu):
        yield from reader.observed


def _gpu(reader: NvmlReader) -> None:
    library, handle, key = reader.library, reader.handle, reader.key
    if (count := reader.attempt("processes", lambda: library.processes(handle))) is not None:
        reader.observe(key, "processes", "count", float(count), "nvmlDeviceGetComputeRunningProcesses")
    if (memory := reader.attempt("memory", lambda: library.memory(handle))) is not None:
        reader.observe(key, "memory_used", "bytes", float(memory.used), "nvmlDeviceGetMemoryInfo")
    if (rates := reader.attempt("use", lambda: library.call("DeviceGetUtilizationRates", handle))) is not None:
        reader.observe(key, "utilization", "ratio", rates.gpu / 100, "nvmlDeviceGetUtilizationRates")
