"""What uses NVIDIA GPUs at this moment, asked before something is measured on them. Runs in a child (calls.py)."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.records import Observation, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS
from .gpus import BOUND
from .nvml_threads import Asking, answering, seconds


def gpu_use(host: Host) -> list[Observation] | None:
    """Of each GPU its compute processes, the bytes of its memory that are in use, and the share of its time.

    None where there are GPUs, and the driver says nothing of any.

    What it does not say of one is not among them: of a GPU cut into instances the share, in containers the processes.
    """
    try:
        bound = any(map(PCI_ADDRESS.fullmatch, host.list(BOUND)))
    except Unreadable:
        bound = True
    said = host.call("nvml_use", deadline=2 * seconds()) if bound else ()
    return [one for one in said if isinstance(one, Observation)] or (None if bound else [])


def use() -> Iterator[Record]:
    """The observations of all GPUs; nothing where the driver cannot be asked, which its own readers have said."""
    for asking in answering(_gpu):
        yield from asking.observed


def _gpu(asking: Asking) -> None:
    library, handle, key = asking.library, asking.handle, asking.key
    if (count := asking.attempt("processes", lambda: library.processes(handle))) is not None:
        asking.observe(key, "processes", "count", float(count), "nvmlDeviceGetComputeRunningProcesses")
    if (memory := asking.attempt("memory", lambda: library.memory(handle))) is not None:
        asking.observe(key, "memory_used", "bytes", float(memory.used), "nvmlDeviceGetMemoryInfo")
    if (rates := asking.attempt("use", lambda: library.ask("DeviceGetUtilizationRates", handle))) is not None:
        asking.observe(key, "utilization", "ratio", rates.gpu / 100, "nvmlDeviceGetUtilizationRates")
