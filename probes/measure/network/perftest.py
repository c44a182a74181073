"""perftest (ib_write_bw, ib_write_lat) from an adapter to itself or to another machine.

https://github.com/linux-rdma/perftest. The dump reader parses its tables, because --out_json of 6.06 is not valid JSON.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ....models.facts.reason import Reason
from ....models.facts.records import LOOPBACK, Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import MIB
from ...dumps.benchmarks import perftest
from ...dumps.core.part import Part
from ..external_tools import ToolFailed, absent, found, run, version
from ..gpu.cuda_driver import CudaError
from ..gpu.cuda_gpus import NUMBERED, tool_may_use
from .client_server import both_ends, free_port

SIZE = MIB  # bytes of a message: InfiniBand reaches 99 % of its rate from 128 KiB on (link-facts)
_SMALL = 8  # bytes of a message in the latency test
_TRIES = 1000
_HERE = "127.0.0.1"


class Test(Struct, frozen=True):
    """One run: port, number of messages, and memory."""

    port: str  # "mlx5_0/1"
    messages: int
    seconds: float  # time limit
    gpu: str | None = None  # "gpu0"
    bus: str | None = None  # the PCI address of that GPU
    owned: bool = False  # the caller owns the GPU
    peer: str | None = None  # another machine; None for the adapter itself
    at: int | None = None  # TCP port of the peer's server

    @property
    def device(self) -> str:
        """The RDMA device."""
        return self.port.partition("/")[0]


def rate(test: Test, watch: Callable[[], None] | None = None) -> Iterator[Record]:
    """Yield the rate of RDMA writes: "rate" to a peer, "hca_loopback" to the adapter itself, without its cable."""
    yield from _measured(test, "ib_write_bw", ["-s", str(SIZE), "-n", str(test.messages), "--report_gbits"], watch)


def latency(test: Test) -> Iterator[Record]:
    """Yield the latency of a small write."""
    yield from _measured(test, "ib_write_lat", ["-s", str(_SMALL), "-n", str(_TRIES)], None)


def _measured(test: Test, tool: str, options: list[str], watch: Callable[[], None] | None) -> Iterator[Record]:
    program = found(tool)
    if program is None:
        yield absent(tool, "port_loopback", test.device)
        return
    try:
        text = _run(test, program, options, watch)
    except CudaError as refusal:
        yield NotChecked(
            what="port_loopback",
            subject=test.gpu or test.port,
            reason=refusal.reason,
            detail=str(refusal),
            how=refusal.how,
        )
        return
    except ToolFailed as failed:
        yield NotChecked(what="port_loopback", subject=test.port, reason=failed.reason, detail=str(failed))
        return
    rows = [one for one in perftest.read(Part(tool, 1, text, time.time())) if isinstance(one, Observation)]
    for row in rows:
        yield _named(test, row, f"{version(program)} {' '.join(options)}")
    if not rows:
        yield NotChecked(
            what="port_loopback",
            subject=test.port,
            reason=Reason.UNREADABLE,
            path=tool,
            detail="its output contains no result",
        )


def _run(test: Test, program: str, options: list[str], watch: Callable[[], None] | None) -> str:
    device, _, number = test.port.partition("/")
    port = test.at or free_port()
    # -F: do not fail if the CPU frequency varies
    help_text = run([program, "--help"], 5.0, ends_with=(0, 1))
    arguments = ["-d", device, "-i", number or "1", "-p", str(port), "-F", *options, *_memory(test, help_text)]
    if test.peer:
        return run([program, *arguments, test.peer], test.seconds, watch=watch)
    # Without this option the server listens on all addresses of the machine.
    here = ["--bind_source_ip", _HERE] if "--bind_source_ip" in help_text else []
    return both_ends([program, *here, *arguments], [program, *arguments, _HERE], port, test.seconds, NUMBERED, watch)


def _memory(test: Test, help_text: str) -> list[str]:
    """Return the option for the GPU. Raises ToolFailed if perftest was built without CUDA, and CudaError."""
    if test.gpu is None:
        return []
    number = tool_may_use(test.gpu, test.bus or "", test.owned)
    if "--use_cuda_bus_id" in help_text and test.bus:
        return [f"--use_cuda_bus_id={test.bus}"]
    if "--use_cuda" in help_text:
        return [f"--use_cuda={number}"]
    raise ToolFailed(
        "this perftest was built without CUDA: build it with --enable-cudart, or take NVIDIA's", Reason.NOT_SUPPORTED
    )


def _named(test: Test, row: Observation, help_text: str) -> Observation:
    """Return the observation for the measured flow. Messages of SIZE do not limit the rate, so the flow has no size."""
    assert isinstance(row.about, Flow)
    evidence = Evidence(row.evidence.source.partition(":")[0], f"{help_text}: {row.evidence.text}")
    size = row.about.size if row.quantity == "latency" else None
    if test.peer:
        flow = replace(row.about, ends=(test.gpu or test.device, test.port), size=size or SIZE)
        return replace(row, about=flow, evidence=replace(evidence, text=f"to {test.peer}, {evidence.text}"))
    about = Flow(LOOPBACK, (test.gpu or "host", test.device), size)
    return replace(row, about=about, quantity=row.quantity.replace("rate", "hca_loopback"), evidence=evidence)
