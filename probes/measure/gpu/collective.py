"""The probe `collective`: bus bandwidth and chosen algorithm of NCCL collectives over all GPUs, by message size.

It runs nccl-tests if installed, else the library through nccl4py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from ....models.bandwidth.collectives import bus_factor
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import GIB, MIB
from ....models.report import Report
from ...gpu.nvml_library import Library, NvmlError
from ..external_tools import ToolFailed
from ..probe import Probe, Scope
from . import nccl_tests
from .copy_plan import gpus_of, rate_of, runs_in_scope
from .copy_request import CopyRequest
from .cuda_driver import Cuda, CudaError
from .cuda_gpus import address_of, check, close_gpus, fitting, open_gpus
from .nccl_algorithm import TIMES, NcclRun, algorithms
from .nccl_library import Nccl

OPS = ("all_reduce", "alltoall")
_LARGEST, _LEAST, _STEP = GIB, 64 * MIB, 4  # bytes; smaller messages measure startup, not links
_BUFFERS = 4  # send and receive buffers, and as much for NCCL's own
_STARTING, _EACH = 6.0, 0.5  # planned seconds for NCCL's topology detection, and for each rank
_DEADLINE = 90.0


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield at "full" one probe for each operation, always over all GPUs."""
    gpus = gpus_of(report.topology)
    run = tuple((name,) for name in gpus)
    if scope.effort != "full" or len(gpus) < 2 or not runs_in_scope(report.topology, [run], scope):
        return
    for op in OPS:
        flow = Flow(op, tuple(gpus), None)
        rate, whole = rate_of(report.topology, [flow]), 2 * TIMES * sum(_sizes(_LARGEST)) * bus_factor(op, len(gpus))
        args = (op, *(("owned",) if scope.owned else ()), *(f"{name}={address}" for name, address in gpus.items()))
        yield Probe(
            name="collective",
            args=args,
            kinds=frozenset({("gpu",) * len(gpus)}),
            bytes=int(whole * len(gpus)),
            seconds=round(_STARTING + _EACH * len(gpus) + whole / rate, 2),
            deadline=_DEADLINE,
        )


def collectives(op: str, *words: str) -> Iterator[Record]:
    """Measure `op` in the child process. `words` are the GPUs as "gpu0=0000:1b:00.0", and "owned" if the caller's."""
    requested = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        gpus = {name: address or address_of(name) for name, address in requested.items()}
        for name, address in gpus.items():
            _may_use(name, address, "owned" in words)
        sizes = _sizes(_largest(gpus.values()))
        if program := nccl_tests.program(op):
            result = nccl_tests.bandwidths(program, len(gpus), sizes, _STEP, _DEADLINE - 5)
        else:
            result = _by_library(op, gpus, "owned" in words, sizes)
    except (CudaError, ToolFailed) as refusal:
        how = refusal.how if isinstance(refusal, CudaError) else None
        yield NotChecked(what="collective", subject="node", reason=refusal.reason, detail=f"{op}: {refusal}", how=how)
        return
    yield from _observations(op, gpus, result)


def _observations(op: str, gpus: Mapping[str, str], result: NcclRun) -> Iterator[Observation]:
    """Yield the bus bandwidths.

    Without the algorithm of an AllReduce its expected rate is unknown. Then the ends of its flow are ranks, not GPUs.
    """
    chosen = algorithms(result.log) if op == "all_reduce" else {}
    named = {address: name for name, address in gpus.items()}
    placed = tuple(named[address] for address in result.gpus if address in named)
    ranks = tuple(f"rank{number}" for number in range(len(gpus)))
    for size, rate in result.rates.items():
        algorithm = chosen.get(size)
        known = len(placed) == len(gpus) and (op != "all_reduce" or algorithm is not None)
        reduced = op == "all_reduce" and (algorithm or "").startswith("NVLS")
        text = f"{size} bytes, {TIMES} times" + (f", algorithm {algorithm or 'unknown'}" if op == "all_reduce" else "")
        yield Observation(
            about=Flow(f"{op}-nvls" if reduced else op, placed if known else ranks, size),
            quantity="bus_bandwidth",
            unit="bytes_per_second",
            value=rate,
            at=time.time(),
            busy=True,
            evidence=Evidence(result.source, text),
        )
    moved = 2 * TIMES * len(gpus) * bus_factor(op, len(gpus)) * sum(result.rates)
    yield Observation(
        about="node",
        quantity="bytes_moved",
        unit="bytes",
        value=moved,
        at=time.time(),
        evidence=Evidence(result.source, f"{2 * TIMES} times, all sizes, all ranks"),
    )


def _by_library(op: str, gpus: Mapping[str, str], owned: bool, sizes: Sequence[int]) -> NcclRun:
    """Run NCCL in this process. Raises CudaError."""
    devices, lost = open_gpus(Cuda(), CopyRequest(effort="full", gpus=gpus, runs=(), owned=owned), "collective")
    try:
        if lost:
            raise CudaError(f"{lost[0].subject}: {lost[0].why}", lost[0].how, reason=lost[0].reason)
        library = Nccl([*devices.values()])
        try:
            return library.bandwidths(op, sizes, [*gpus.values()])
        finally:
            library.close()
    finally:
        close_gpus(devices)


def _may_use(name: str, address: str, owned: bool) -> None:
    try:
        check(address, owned)
    except CudaError as refusal:
        raise CudaError(f"{name}: {refusal}", refusal.how, reason=refusal.reason) from None


def _sizes(largest: int) -> list[int]:
    """Return the sizes from the smallest on, like nccl-tests with -f."""
    sizes = [_LEAST]
    while sizes[-1] * _STEP <= largest:
        sizes.append(sizes[-1] * _STEP)
    return sizes


def _largest(addresses: Iterable[str]) -> int:
    """Return the largest size whose buffers fit into 5 % of each GPU's free memory; the smallest size if unknown."""
    free = list[int]()
    with suppress(ImportError, NvmlError):
        library = Library()
        library.call("Init")
        free = [library.memory(library.call("DeviceGetHandleByPciBusId", address)).free for address in addresses]
    size = fitting(min(free), _LARGEST, _BUFFERS, _LEAST) if free else _LEAST
    if size is None:
        raise CudaError(
            f"only {min(free) / 1e6:.0f} MB of the memory of a GPU are free",
            "end what uses it",
            reason=Reason.NOT_MEASURED,
        )
    return size
