"""fio and gdsio on blocks that hold data: what experts measure disks with, read as their dumps are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import MIB
from ...dumps.benchmarks import fio
from ...dumps.core.part import Part
from ...dumps.nvidia import gds
from ..external_tools import ToolFailed, absent, found, run, version
from ..gpu.cuda_driver import Refused
from ..gpu.cuda_gpus import NUMBERED, tool_may_use
from .data_blocks import BLOCK, Block

_DEPTH = 32  # reads at a time: the fastest disks need more than 8
_GPU_THREADS = 8
_FEWEST = 256 * MIB  # less is over before it has begun


def longest_run(blocks: Sequence[Block]) -> Sequence[Block]:
    """The longest stretch of blocks that follow each other in one file."""
    starts = [
        number
        for number, block in enumerate(blocks)
        if not number or (block.file, block.offset - BLOCK) != (blocks[number - 1].file, blocks[number - 1].offset)
    ]
    ends = [*starts[1:], len(blocks)]
    start, end = max(zip(starts, ends, strict=True), key=lambda one: one[1] - one[0])
    return blocks[start:end]


def by_fio(
    disk: str, run_of: Sequence[Block], depth: int, seconds: float, watch: Callable[[], None]
) -> Iterator[Record]:
    """What fio reads of blocks that follow each other."""
    program = found("fio")
    if program is None:
        yield absent("fio", "fio", disk)
        return
    first, size = run_of[0], len(run_of) * BLOCK
    if size < _FEWEST:
        yield NotChecked(
            what="fio",
            subject=disk,
            reason=Reason.NOT_MEASURED,
            detail=f"no {_FEWEST // MIB} MiB of data follow each other",
        )
        return
    depth = max(depth, _DEPTH)
    path = _path(first).replace(":", "\\:")  # which stands between several
    command = [
        program,
        "--name=read",
        f"--filename={path}",
        "--readonly",
        "--rw=read",
        "--direct=1",
        "--thread",
        "--ioengine=libaio",
        f"--iodepth={depth}",
        f"--bs={BLOCK}",
        f"--offset={first.offset}",
        f"--size={size}",
        f"--runtime={max(1, round(seconds))}",
        "--invalidate=0",
        "--allow_file_create=0",
        "--output-format=json",
    ]
    try:
        text = run(command, seconds + 10, watch=watch)
    except ToolFailed as failed:
        yield NotChecked(what="fio", subject=disk, reason=failed.reason, detail=str(failed))
        return
    told = f"{version(program)}: libaio, depth {depth}, blocks of {BLOCK // MIB} MiB, {size // MIB} MiB at most; "
    yield from _named(fio.read(Part("fio", 1, text, time.time())), Flow("read", (disk, "host")), told, "fio")


def by_gdsio(disk: str, gpu: str, blocks: Sequence[Block], seconds: float, owned: bool) -> Iterator[Record]:
    """What GPUDirect Storage reads into the GPU that is nearest, "gpu3=0000:1b:00.0"; `owned`: it is the caller's."""
    program = found("gdsio")
    if program is None:  # who does not use it, does not miss it
        return
    run_of = longest_run(blocks)
    first, size = run_of[0], len(run_of) * BLOCK
    options = ["-w", str(_GPU_THREADS), "-s", f"{size // MIB}M", "-i", "1M", "-x", "0", "-I", "0"]
    gpu, _, address = gpu.partition("=")
    try:
        number = tool_may_use(gpu, address, owned)
        command = [program, "-f", _path(first), "-d", number, *options, "-T", str(max(1, round(seconds)))]
        text = run(command, seconds + 20, NUMBERED)
    except Refused as refusal:
        yield NotChecked(what="gdsio", subject=gpu, reason=refusal.reason, detail=str(refusal), how=refusal.how)
        return
    except ToolFailed as failed:
        yield NotChecked(what="gdsio", subject=disk, reason=failed.reason, detail=str(failed))
        return
    asked = f"$ gdsio -f /dev/{disk} -d {number} {' '.join(options)}\n"  # the file lies there
    flow = Flow("read", (disk, gpu))
    yield from _named(gds.read(Part("gdsio", 1, asked + text, time.time())), flow, "gdsio: GPUDirect, ", "gdsio")


def _path(block: Block) -> str:
    """The name of the file. Below /proc it is a link, whose own size fio takes for that of the file."""
    return os.readlink(f"/proc/self/fd/{block.file}")


def _named(said: Iterator[Record], flow: Flow, told: str, tool: str) -> Iterator[Record]:
    """The rates of a tool under the name of the flow. So many at a time fill the disk: their size is no limit."""
    rates = [one for one in said if isinstance(one, Observation) and one.quantity == "rate"]
    for one in rates:
        yield replace(one, about=flow, evidence=Evidence(tool, told + one.evidence.text))
    if not rates:
        yield NotChecked(
            what=tool, subject=flow.subject, reason=Reason.UNREADABLE, detail="nothing of what it printed is a rate"
        )
