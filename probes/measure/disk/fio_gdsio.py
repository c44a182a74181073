"""Disk measurements with fio and gdsio on blocks that contain data; the dump readers parse their output."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import MIB
from ...dumps.benchmarks import fio
from ...dumps.core.part import Part
from ...dumps.nvidia import gds
from ..external_tools import ToolFailed, absent, found, run, version
from ..gpu.cuda_driver import CudaError
from ..gpu.cuda_gpus import NUMBERED, tool_may_use
from .data_blocks import BLOCK, Block

_DEPTH = 32  # concurrent reads: the fastest disks need more than 8
_GPU_THREADS = 8
_FEWEST = 256 * MIB  # bytes; a shorter run ends too soon


def longest_run(blocks: Sequence[Block]) -> Sequence[Block]:
    """Return the longest sequence of contiguous blocks in one file."""
    starts = [
        number
        for number, block in enumerate(blocks)
        if not number or (block.file, block.offset - BLOCK) != (blocks[number - 1].file, blocks[number - 1].offset)
    ]
    ends = [*starts[1:], len(blocks)]
    start, end = max(zip(starts, ends, strict=True), key=lambda one: one[1] - one[0])
    return blocks[start:end]


def by_fio(
    disk: str, run_blocks: Sequence[Block], depth: int, seconds: float, watch: Callable[[], None]
) -> Iterator[Record]:
    """Yield the read rate of fio for contiguous blocks."""
    program = found("fio")
    if program is None:
        yield absent("fio", "fio", disk)
        return
    size = len(run_blocks) * BLOCK
    if size < _FEWEST:
        yield NotChecked(
            what="fio",
            subject=disk,
            reason=Reason.NOT_MEASURED,
            detail=f"no {_FEWEST // MIB} MiB of data follow each other",
        )
        return
    depth = max(depth, _DEPTH)
    try:
        text = run(_fio_command(program, run_blocks, depth, seconds), seconds + 10, watch=watch)
    except ToolFailed as failed:
        yield NotChecked(what="fio", subject=disk, reason=failed.reason, detail=str(failed))
        return
    prefix = f"{version(program)}: libaio, depth {depth}, blocks of {BLOCK // MIB} MiB, {size // MIB} MiB at most; "
    yield from _named(fio.read(Part("fio", 1, text, time.time())), Flow("read", (disk, "host")), prefix, "fio")


def _fio_command(program: str, run_blocks: Sequence[Block], depth: int, seconds: float) -> list[str]:
    path = _path(run_blocks[0]).replace(":", "\\:")  # fio separates file names by colons
    return [
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
        f"--offset={run_blocks[0].offset}",
        f"--size={len(run_blocks) * BLOCK}",
        f"--runtime={max(1, round(seconds))}",
        "--invalidate=0",
        "--allow_file_create=0",
        "--output-format=json",
    ]


def by_gdsio(disk: str, gpu: str, blocks: Sequence[Block], seconds: float, owned: bool) -> Iterator[Record]:
    """Yield the rate of GPUDirect Storage into `gpu`, "gpu3=0000:1b:00.0"; `owned`: the caller owns the GPU."""
    program = found("gdsio")
    if program is None:  # optional: not reported as missing
        return
    run_blocks = longest_run(blocks)
    first, size = run_blocks[0], len(run_blocks) * BLOCK
    options = ["-w", str(_GPU_THREADS), "-s", f"{size // MIB}M", "-i", "1M", "-x", "0", "-I", "0"]
    gpu, _, address = gpu.partition("=")
    try:
        number = tool_may_use(gpu, address, owned)
        command = [program, "-f", _path(first), "-d", number, *options, "-T", str(max(1, round(seconds)))]
        text = run(command, seconds + 20, NUMBERED)
    except CudaError as refusal:
        yield NotChecked(what="gdsio", subject=gpu, reason=refusal.reason, detail=str(refusal), how=refusal.how)
        return
    except ToolFailed as failed:
        yield NotChecked(what="gdsio", subject=disk, reason=failed.reason, detail=str(failed))
        return
    command_line = f"$ gdsio -f /dev/{disk} -d {number} {' '.join(options)}\n"  # the disk of the file
    flow = Flow("read", (disk, gpu))
    yield from _named(gds.read(Part("gdsio", 1, command_line + text, time.time())), flow, "gdsio: GPUDirect, ", "gdsio")


def _path(block: Block) -> str:
    """Return the file's name. fio would use the size of the link in /proc instead of the file's."""
    return os.readlink(f"/proc/self/fd/{block.file}")


def _named(records: Iterator[Record], flow: Flow, prefix: str, tool: str) -> Iterator[Record]:
    """Yield a tool's rates for the flow. At this depth the block size does not limit the rate: the flow has no size."""
    rates = [one for one in records if isinstance(one, Observation) and one.quantity == "rate"]
    for one in rates:
        yield replace(one, about=flow, evidence=Evidence(tool, prefix + one.evidence.text))
    if not rates:
        yield NotChecked(
            what=tool, subject=flow.subject, reason=Reason.UNREADABLE, detail="its output contains no rate"
        )
