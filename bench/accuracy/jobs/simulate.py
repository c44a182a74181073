"""The times that the ranks of a synthetic job record: each GPU computes, then waits in each collective for the last.

Rates of healthy links are those of the size model for DGX H100 machines, with an error: the same for all equal groups,
because this model also judges them, and a small one for each group. A fault divides the rate of all groups that use a
part, or makes a GPU compute or load its input more slowly. Noise is a share of each duration.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.accuracy.jobs.cluster import GPUS, NODES_OF_LEAF, Dimension, Ids, Layout, host_of, members
from linkgauge.agent.cli.model.cluster_spec import ClusterSpec, cluster
from linkgauge.models.jobs.expected import modelled, shape_of
from linkgauge.models.jobs.log import Communicator, JobLog, Member, Series
from linkgauge.models.jobs.placement import Place
from linkgauge.models.jobs.rates import seconds_at
from linkgauge.models.training.cluster import Cluster
from linkgauge.probes.jobs.inspector_lines import kind_of

MACHINE = "nvidia-dgx-h100"
FAULTS = ("nic", "rail", "leaf", "nvlink", "throttled", "input")
MODEL_ERROR = 0.2  # largest error of the model's rate for the groups of one kind
SCATTER = 0.02  # standard deviation between equal groups: other lengths of cables, other neighbours
COMPUTE = 0.2  # seconds of a step
ACROSS = 0.6  # bus bandwidth between nodes that use all NICs, as a share of that inside a node (machine type)

Times: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Fault:
    """What is slow. `factor`: of the time of a link or of the computation; for input: of the computation, added."""

    kind: Literal["nic", "rail", "leaf", "nvlink", "throttled", "input"]
    subject: str  # the name of the part; of a GPU or an input the host
    factor: float
    gpus: tuple[int, ...] = ()
    start: int = 0  # step


@cache
def machines(nodes: int) -> Cluster:
    """The cluster whose size model gives the healthy rates."""
    return cluster(ClusterSpec(MACHINE, nodes))


def fault_of(kind: str, job: Layout, chance: np.random.Generator) -> Fault | None:
    """A random fault of this kind that the job could show. None: its groups do not use such a part."""
    node, gpu = int(chance.integers(job.nodes)), int(chance.integers(GPUS))
    host, slower = host_of(node), float(chance.uniform(1.5, 3))
    subject = {
        "nic": f"{host}/nic{gpu}",
        "rail": f"rail{gpu}",
        "leaf": f"leaf{node // NODES_OF_LEAF}",
        "nvlink": f"{host}/nvlink",
    }
    leaves = -(-job.nodes // NODES_OF_LEAF)
    match kind:
        case "nvlink" if all(job.across):
            return None
        case "leaf" if leaves < 2:  # nothing to compare it with
            return None
        case "nic" | "rail" | "leaf" | "nvlink":
            return Fault(kind, subject[kind], slower) if subject[kind] in job.users else None
        case "throttled":
            return Fault("throttled", host, float(chance.uniform(1.3, 2)), (node * GPUS + gpu,))
    across = any(each and one.size for each, one in zip(job.across, job.dimensions, strict=True))
    several = range(node * GPUS, (node + 1) * GPUS) if across and chance.random() < 0.5 else (node * GPUS + gpu,)
    return Fault("input", host, float(chance.uniform(1.3, 2)), tuple(several))


def simulate(
    job: Layout, faults: Sequence[Fault], noise: float, steps: int, chance: np.random.Generator
) -> list[list[Times]]:
    """For each dimension and operation, the seconds of each GPU in each step."""
    clock = np.zeros(job.gpus)
    base = [_healthy(dimension, job.nodes, chance) for dimension in job.dimensions]
    groups = [np.unique(dimension.group, return_inverse=True)[1] for dimension in job.dimensions]
    found: list[list[Times]] = [[] for _ in job.dimensions]
    pieces = job.dimensions[0].repeats  # the computation lies between the collectives of the first dimension
    for step in range(steps):
        active = [fault for fault in faults if step >= fault.start]
        late = _slower(job.gpus, [fault for fault in active if fault.kind == "input"]) - 1
        slower = _slower(job.gpus, [fault for fault in active if fault.kind == "throttled"])
        clock = clock + COMPUTE * late
        for index, dimension in enumerate(job.dimensions):
            for _ in range(dimension.repeats):
                jitter = np.maximum(0.2, 1 + noise * chance.standard_normal(job.gpus))
                clock = clock + COMPUTE / pieces * slower * jitter * (index == 0)
                taken = base[index] * _links(job, index, base[index].size, active)
                taken = taken * np.maximum(0.2, 1 + noise * chance.standard_normal(taken.size))
                last = np.full(taken.size, -np.inf)
                np.maximum.at(last, groups[index], clock)
                end = (last + taken)[groups[index]]
                found[index].append(end - clock)
                clock = end
    return found


def _slower(gpus: int, faults: Sequence[Fault]) -> Times:
    factor = np.ones(gpus)
    for fault in faults:
        factor[list(fault.gpus)] = np.maximum(factor[list(fault.gpus)], fault.factor)
    return factor


def _links(job: Layout, index: int, count: int, faults: Sequence[Fault]) -> Times:
    factor = np.ones(count)
    for fault in faults:
        for dimension, group in job.users.get(fault.subject, ()) if not fault.gpus else ():
            if dimension == index:
                factor[group] = max(factor[group], fault.factor * share_of(job, fault.subject, index))
    return factor


def share_of(job: Layout, part: str, dimension: int) -> float:
    """The share of a part's slowness that the groups of a dimension see: between nodes, NICs are slower than NVLink."""
    return ACROSS if part.endswith("/nvlink") and job.across[dimension] else 1.0


def _healthy(dimension: Dimension, nodes: int, chance: np.random.Generator) -> Times:
    """Seconds of each group."""
    groups = list(members(dimension).values())
    if not dimension.size:
        return np.zeros(len(groups))
    modelled = [_seconds(dimension.op, dimension.size, _shape(gpus), nodes) for gpus in groups]
    error = chance.uniform(1 - MODEL_ERROR, 1 + MODEL_ERROR)
    return np.array(modelled) / error * np.maximum(0.9, 1 + SCATTER * chance.standard_normal(len(groups)))


def _shape(gpus: Ids) -> tuple[tuple[int, int], ...]:
    return tuple((int(gpu // GPUS), int(gpu % GPUS)) for gpu in gpus)


@cache
def _seconds(op: str, size: int, where: tuple[tuple[int, int], ...], nodes: int) -> float:
    kind = kind_of(op, "RING", "SIMPLE", size, -1)
    assert kind
    shape = shape_of([Place(host_of(node), gpu) for node, gpu in where], len(where))
    expected = modelled(kind, shape, machines(nodes))
    rate = expected.typical if expected else 20e9
    return seconds_at(kind.op, len(where), size, rate)


def log_of(job: Layout, found: Sequence[Sequence[Times]]) -> JobLog:
    """The log as the readers make it of the lines of all ranks."""
    log = JobLog(files=job.gpus, versions={"v4.3"})
    for dimension, times in zip(job.dimensions, found, strict=True):
        kind = kind_of(dimension.op, "RING", "SIMPLE", dimension.size or 1, -1)
        matrix = np.floor(np.array(times) * 1e6).T
        numbers = array("Q", range(matrix.shape[1]))
        for group, gpus in members(dimension).items():
            name = f"{dimension.name}{group}"
            one = Communicator(name, len(gpus), name=dimension.name)
            for rank, gpu in enumerate(gpus.tolist()):
                series = {kind: Series(len(numbers), 1 << 32, numbers, array("f", matrix[gpu]))} if kind else {}
                one.members[rank] = Member(host_of(gpu // GPUS), f"pid {1000 + gpu % GPUS}", series=series)
            log.communicators[name] = one
    return log


def hosts_alike(job: Layout, fault: Fault) -> frozenset[str]:
    """The hosts that come late with a slow one: those of its pipeline, unless a collective inside a host shows more."""
    hosts = {fault.subject}
    shown = len(fault.gpus) == 1 and not all(job.across)
    for one in job.dimensions if not shown else ():
        if not one.size:
            pipeline = one.group == one.group[fault.gpus[0]]
            hosts |= {host_of(node) for node in (np.flatnonzero(pipeline) // GPUS).tolist()}
    return frozenset(hosts)
