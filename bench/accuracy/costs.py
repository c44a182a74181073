"""Costs of findings beside a calculation by hand: python -m bench.accuracy.costs

Ten faults and ten pairs on three nodes, each with four jobs on 64 such nodes. By hand, the factor of an operation is a
quotient of rates or clocks, and of a pair the larger one. The factor of a step uses the parts of the healthy plan:
matrix products take the factor of the clock, messages that of their links, and as much hides behind computing as
before. Of a message at least the part without startup times takes longer, and at most all of it, so the result is a
range. The exit code is 1 if a factor is more than 4 % outside: links inside nodes may limit a part of the messages that
the calculation gives to the network.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from bench.accuracy.edits import Edit, inactive, names_of, set_fields, together, width, without
from bench.accuracy.healthy_nodes import HealthyNode, node_of
from linkgauge.models.bandwidth.collective_algorithms import Algorithms
from linkgauge.models.diagnosis.impact import COMPUTE, FABRIC, Impact
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Port, Setting
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.models.training.cost import cluster_for, cost_of
from linkgauge.models.training.job_spec import read_job
from linkgauge.models.training.planner import plan_of
from linkgauge.models.training.step_time import Step

NODES = ("hgx-h100", "hgx-a100", "hgx-b200")
JOBS = (
    "llama3-70b,tp=8,dp=64,zero=3,micro=4,gbs=512,recompute",
    "llama3-8b,dp=512,zero=3,gbs=512,recompute",
    "llama3-405b,tp=8,pp=16,dp=4,gbs=512,recompute",
    "mixtral-8x7b,dp=512,ep=8,zero=3,gbs=1024,recompute",
)
MOST = 0.04
CANNOT = "cannot run"
Hand = Mapping[str, float]  # by operation; empty: cannot run


class Place(Struct, frozen=True):
    """What the calculation by hand needs of a machine: bytes per second, counts, hertz."""

    node: HealthyNode
    port: str  # the nearest one of gpu0 and gpu1
    port_rate: float
    lanes_8: float  # of GPU 1 with 8 lanes; half of the link that two GPUs share to the processor
    memory: float  # of a memory node, per GPU near it
    links: tuple[str, ...]  # NVLinks of GPU 1
    others: tuple[str, ...]  # of GPU 2
    clock: float  # of the other GPUs


class Cell(Struct, frozen=True):
    """A factor as linkgauge computes it, and its range by hand; None: the job cannot run."""

    found: float | None
    hand: tuple[float, float] | None

    @property
    def near(self) -> bool:
        """Whether both agree."""
        if self.found is None or self.hand is None:
            return self.found is None and self.hand is None
        return self.hand[0] * (1 - MOST) <= self.found <= self.hand[1] * (1 + MOST)

    def __str__(self) -> str:
        if self.found is None or self.hand is None:
            return CANNOT if self.near else f"NOT MET: {self.found} / {self.hand}"
        both = sorted({f"{one:.2f}" for one in self.hand})
        return f"{'' if self.near else 'NOT MET: '}{self.found:.2f} / {' to '.join(both)}"


Fault = Callable[[Place], tuple[Edit, Hand]]


@cache
def place(name: str) -> Place:
    """The place of the faults on a described node."""
    node = node_of(name)
    snapshot = node.snapshot
    port = "mlx5_2/1" if name == "hgx-h100" else "mlx5_0/1"
    links = snapshot.of(GpuLink)
    own, others = (tuple(key for key, one in links.items() if one.gpu == gpu) for gpu in ("gpu1", "gpu2"))
    gpu = snapshot.of(Gpu)["gpu1"]
    whole = snapshot.topology.link_below[gpu.address or ""].rated or 0.0
    memories = [one.rated for one in snapshot.topology.links if one.a.startswith("numa") and one.rated]
    memory = min(memories) / (2 if name == "hgx-a100" else 4)
    rate = snapshot.of(Port)[port].rate or 0.0
    return Place(node, port, rate, whole / 2, memory, own, others, gpu.application_clock or 0.0)


def _narrow(lanes: int) -> Fault:
    def fault(at: Place) -> tuple[Edit, Hand]:
        edit = width(at.node.snapshot, at.node.snapshot.of(Gpu)["gpu1"].address or "", lanes)
        return edit, {FABRIC: at.port_rate / (at.lanes_8 * lanes / 8)}

    return fault


def _inactive(gpu: str, many: int) -> Fault:
    def fault(at: Place) -> tuple[Edit, Hand]:
        links = at.links if gpu == "gpu1" else at.others
        factor = len(links) / (len(links) - many)
        return inactive(at.node.snapshot, gpu, links[:many]), {"all_reduce": factor, "alltoall": factor}

    return fault


def _down(at: Place) -> tuple[Edit, Hand]:
    """Two GPUs share the other port."""
    return set_fields(Port, at.port, state="DOWN", physical_state="Polling"), {FABRIC: 2.0}


def _half(at: Place) -> tuple[Edit, Hand]:
    return set_fields(Port, at.port, rate=at.port_rate / 2), {FABRIC: 2.0}


def _slow_clock(at: Place) -> tuple[Edit, Hand]:
    return set_fields(Gpu, "gpu1", application_clock=1e9), {COMPUTE: at.clock / 1e9}


def _hot(at: Place) -> tuple[Edit, Hand]:
    """The driver halves the clock (nvml.h)."""
    reasons = ("hardware slowdown", "hardware thermal slowdown")
    return set_fields(Gpu, "gpu1", clock_reasons=reasons), {COMPUTE: 2.0}


def _no_gdr(at: Place) -> tuple[Edit, Hand]:
    """Two GPUs share a link to the processor; each byte is written to its memory and read again."""
    return set_fields(Setting, "kernel_module", value="Kernel Module"), {
        FABRIC: at.port_rate / min(at.lanes_8, at.memory / 2)
    }


def _gone(at: Place) -> tuple[Edit, Hand]:
    snapshot = at.node.snapshot
    return without(names_of(snapshot, snapshot.of(Gpu)["gpu1"].address or "")), {}


FAULTS: Mapping[str, Fault] = {
    "GPU at x8": _narrow(8),
    "GPU at x4": _narrow(4),
    "port down": _down,
    "port at half rate": _half,
    "one NVLink inactive": _inactive("gpu1", 1),
    "four NVLinks inactive": _inactive("gpu2", 4),
    "clock limited to 1 GHz": _slow_clock,
    "GPU throttled": _hot,
    "no GPUDirect RDMA": _no_gdr,
    "GPU absent": _gone,
}
PAIRS = (
    ("GPU at x8", "port at half rate"),
    ("GPU at x8", "port down"),
    ("GPU at x4", "port down"),
    ("port down", "one NVLink inactive"),
    ("port at half rate", "clock limited to 1 GHz"),
    ("four NVLinks inactive", "clock limited to 1 GHz"),
    ("GPU at x8", "GPU throttled"),
    ("one NVLink inactive", "four NVLinks inactive"),
    ("no GPUDirect RDMA", "four NVLinks inactive"),
    ("port down", "GPU absent"),
)


def by_hand(names: tuple[str, ...], at: Place) -> Hand:
    """The factors of one or two faults; empty if no job can run."""
    each = [FAULTS[name](at)[1] for name in names]
    if not all(each):
        return {}
    return {op: max(one.get(op, 1.0) for one in each) for op in ("all_reduce", "alltoall", FABRIC, COMPUTE)}


def step_by_hand(step: Step, bare: Step, hand: Hand, inside: str, startup: bool) -> float:
    """The factor of a step from the parts of the healthy one, and of the same without startup times of messages.

    With `startup`, these times take the factor too.
    """

    def messages(name: str) -> float:
        wait = step.waits.get(name)
        if wait is None:
            return 0.0
        more = (hand["all_reduce"] if wait.held == inside else hand[FABRIC]) - 1
        return wait.seconds + more * (wait if startup else bare.waits[name]).seconds

    compute = step.moved + (step.compute - step.moved) * hand[COMPUTE]
    host = step.waits["launch"].seconds if "launch" in step.waits else 0.0
    busy, was = max(compute, host), max(step.compute, host)  # messages overlap with both
    idle = step.bubble / (step.usual - step.update - step.bubble - _outside(step))
    sent = messages("pipeline")
    data = step.waits["data"]
    hidden = (data.seconds - data.shown) * busy / was
    if step.layout.zero == 3:  # compute hides at most seven tenths of the messages (models/training/step_time.py)
        hidden = min(busy - sent, 0.7 * messages("data"))
    gradients = max(0.0, messages("data") - max(0.0, hidden))
    repeated = max(host, compute + messages("tensor") + messages("expert"))
    return (repeated * (1 + idle) + max(0.0, sent - busy) + gradients + step.update) / step.usual


def _outside(step: Step) -> float:
    return sum(step.waits[name].shown for name in ("pipeline", "data") if name in step.waits)


def report_of(names: tuple[str, ...], at: Place) -> Report:
    """The report of the node with these faults."""
    records = together(*(FAULTS[name](at)[0] for name in names))(list(at.node.records))
    return evaluate(assemble(records, Site(), at.node.now, origin=at.node.origin))


def rows() -> Iterator[tuple[tuple[str, ...], str, list[Cell]]]:
    """Each case on each node: the factors of operations and of the jobs' steps."""
    for names in (*((name,) for name in FAULTS), *PAIRS):
        for node in NODES:
            yield names, node, list(_cells(names, place(node)))


def _cells(names: tuple[str, ...], at: Place) -> Iterator[Cell]:
    report, hand = report_of(names, at), by_hand(names, at)
    for name in ("all_reduce", FABRIC, COMPUTE):
        factor = report.impact.get(name, 1.0) if report.cost != CANNOT else None
        yield Cell(factor, (hand[name], hand[name]) if hand else None)
    for job in JOBS:
        training = cost_of(at.node.snapshot, read_job(job), Impact(report.impact, report.cost), ())
        slower = training.slower.usual if training.slower else None
        step, bare, inside = steps(at.node.name, job)
        ranges = [step_by_hand(step, bare, hand, inside, startup) for startup in (False, True)] if hand else None
        yield Cell(slower, (ranges[0], ranges[1]) if ranges else None)


@cache
def steps(node: str, job: str) -> tuple[Step, Step, str]:
    """The step on healthy nodes, the same without startup times, and the name of the level inside a node."""
    spec = read_job(job)
    layout, cluster = cluster_for(place(node).node.snapshot, spec)
    each = (
        {op: replace(one, startup=0.0, latency=0.0) for op, one in known.items()}
        for known in (cluster.algorithms.near, cluster.algorithms.far)
    )
    bare = replace(cluster, algorithms=Algorithms(*each))
    return plan_of(spec.job, layout, cluster).step, plan_of(spec.job, layout, bare).step, cluster.inside


def main() -> int:
    """Print the table. Returns the exit code."""
    titles = ("all_reduce", "over the fabric", "compute", *(job.partition(",")[0] for job in JOBS))
    print(f"| faults | node | {' | '.join(titles)} |\n|---|---|{'---|' * len(titles)}")
    every = []
    for names, node, cells in rows():
        every += [cell.near for cell in cells]
        print(f"| {' and '.join(names)} | {node} | {' | '.join(map(str, cells))} |")
    print(f"\n- {sum(every)} of {len(every)} factors are within {MOST:.0%} of the calculation by hand")
    return 0 if all(every) else 1


if __name__ == "__main__":
    sys.exit(main())
