"""Collectives by the programs of nccl-tests (github.com/NVIDIA/nccl-tests), where they are installed."""

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

_PLACES = "/opt/nccl-tests/build:/usr/local/nccl-tests/build:/usr/local/bin"  # of cloud images and containers
_WARM = 5


def program(op: str) -> str | None:
    """Where "all_reduce_perf" is; None where it is not."""
    return shutil.which(f"{op}_perf", path=f"{os.environ.get('PATH') or os.defpath}:{_PLACES}")


def bandwidths(program: str, ranks: int, sizes: Sequence[int], step: int, deadline: float) -> NcclRun:
    """Of each size, with a rank on each of the first so many GPUs, which are numbered as the driver numbers them.

    Raises ToolFailed.
    """
    options = ["-b", f"{sizes[0]}", "-e", f"{sizes[-1]}", "-f", f"{step}", "-g", f"{ranks}"]
    options += ["-n", f"{TIMES}", "-w", f"{_WARM}", "-c", "0"]
    text = run([program, *options], deadline, {**LOG, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    source = " ".join((os.path.basename(program), *options))
    rates, addresses = dict[int, float](), dict[str, str | None]()
    for said in nccl.read(Part(source, 1, text)):
        if isinstance(said, Observation) and isinstance(said.about, Flow) and said.about.size:
            rates[said.about.size] = said.value
        elif isinstance(said, Gpu):
            addresses[said.key] = said.address
    if not rates:
        raise ToolFailed(f"{source}: it printed no bandwidth")
    return NcclRun(source, rates, [addresses.get(f"gpu{rank}") for rank in range(ranks)], text)
