"""Collectives with the programs of nccl-tests (github.com/NVIDIA/nccl-tests)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from ....models.facts.gpu import Gpu
from ....models.facts.records import Flow, Observation
from ...dumps.benchmarks import nccl
from ...dumps.core.part import Part
from ..external_tools import ToolFailed, run
from .nccl_algorithm import LOG, TIMES, NcclRun

_PLACES = "/opt/nccl-tests/build:/usr/local/nccl-tests/build:/usr/local/bin"  # folders in cloud images and containers
_WARM = 5


def program(op: str) -> str | None:
    """Return the path of, for example, "all_reduce_perf"; None if it is not installed."""
    return shutil.which(f"{op}_perf", path=f"{os.environ.get('PATH') or os.defpath}:{_PLACES}")


def bandwidths(program: str, ranks: int, sizes: Sequence[int], step: int, deadline: float) -> NcclRun:
    """Return the bandwidth of each size with a rank on each of the first `ranks` GPUs, in the driver's numbering.

    Raises ToolFailed.
    """
    options = ["-b", f"{sizes[0]}", "-e", f"{sizes[-1]}", "-f", f"{step}", "-g", f"{ranks}"]
    options += ["-n", f"{TIMES}", "-w", f"{_WARM}", "-c", "0"]
    text = run([program, *options], deadline, {**LOG, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    source = " ".join((os.path.basename(program), *options))
    rates, addresses = dict[int, float](), dict[str, str | None]()
    for record in nccl.read(Part(source, 1, text)):
        if isinstance(record, Observation) and isinstance(record.about, Flow) and record.about.size:
            rates[record.about.size] = record.value
        elif isinstance(record, Gpu):
            addresses[record.key] = record.address
    if not rates:
        raise ToolFailed(f"{source}: it printed no bandwidth")
    return NcclRun(source, rates, [addresses.get(f"gpu{rank}") for rank in range(ranks)], text)
