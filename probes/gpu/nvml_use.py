"""The call `nvml_use`: current use of NVIDIA GPUs, read before a measurement. It runs in a child process."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ...models.facts.records import Observation, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS
from .gpus import BOUND
from .nvml_reader import NvmlReader
from .nvml_threads import seconds, usable_gpus

# Seconds between two looks at a GPU that computes. While the driver initializes GPUs with ECC, it reports high
# utilization, because it scrubs their memory (nvidia-smi(1), Utilization).
_SCRUBBED = 2.0
_AGAIN = "again"


def gpu_use(host: Host, again: bool = False) -> list[Observation] | None:
    """Return compute processes (count), memory in use (bytes) and utilization (ratio) of each GPU.

    `again`: look at GPUs that compute without a process a second time. Returns None if there are GPUs but the driver
    reports none of them. Unreported values are left out: the utilization of a GPU with MIG instances, the processes in
    containers. So is the memory of a GPU that is a NUMA node (Grace), because the kernel uses it like other memory.
    """
    try:
        bound = any(map(PCI_ADDRESS.fullmatch, host.list(BOUND)))
    except Unreadable:
        bound = True
    records = host.call("nvml_use", *([_AGAIN] if again else ()), deadline=2 * seconds()) if bound else ()
    found = [one for one in records if isinstance(one, Observation)]
    coherent = {one.about for one in found if one.quantity == "memory_node" and not _has_cpus(host, int(one.value))}
    return [one for one in found if not (one.quantity == "memory_used" and one.about in coherent)] or (
        None if bound else []
    )


def _has_cpus(host: Host, node: int) -> bool:
    """Whether a NUMA node has CPUs, or is unknown."""
    try:
        return host.read(f"sys/devices/system/node/node{node}/cpulist") != ""
    except Unreadable:
        return True


def use(again: str = "") -> Iterator[Record]:
    """Yield the observations of all GPUs; nothing if the driver cannot be used (nvml.py reports that).

    The second look is in the same process: without persistence mode, the next process initializes the GPUs again.
    """
    found = {(one.about, one.quantity): one for reader in usable_gpus(_gpu) for one in reader.observed}
    works = {quantity for (_, quantity), one in found.items() if one.value > 0}
    if again and "utilization" in works and "processes" not in works:
        time.sleep(_SCRUBBED)
        found.update({(one.about, one.quantity): one for reader in usable_gpus(_gpu) for one in reader.observed})
    yield from found.values()


def _gpu(reader: NvmlReader) -> None:
    library, handle, key = reader.library, reader.handle, reader.key
    if (count := reader.attempt("processes", lambda: library.processes(handle))) is not None:
        reader.observe(key, "processes", "count", float(count), "nvmlDeviceGetComputeRunningProcesses")
    if (memory := reader.attempt("memory", lambda: library.memory(handle))) is not None:
        reader.observe(key, "memory_used", "bytes", float(memory.used), "nvmlDeviceGetMemoryInfo")
    if (node := reader.attempt("memory_node", lambda: library.call("DeviceGetNumaNodeId", handle))) is not None:
        reader.observe(key, "memory_node", "count", float(node), "nvmlDeviceGetNumaNodeId")
    if (rates := reader.attempt("use", lambda: library.call("DeviceGetUtilizationRates", handle))) is not None:
        reader.observe(key, "utilization", "ratio", rates.gpu / 100, "nvmlDeviceGetUtilizationRates")
