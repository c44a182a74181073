"""Planning of copies: the GPUs, and the cost of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ....models.facts.records import Flow
from ....models.graph.fair_share import fill
from ....models.graph.flow_paths import sub_flows
from ....models.graph.routes import rated, routes
from ....models.graph.topology import Topology
from ....models.report import Report
from ...parsing.parsers import PCI_ADDRESS
from ..probe import Probe, Scope
from .copy_request import PACES, CopyRequest, Run, flows
from .cuda_gpus import OPENING, starting
from .pinned_memory import ANYWHERE

_UNKNOWN = 64e9  # assumed bytes per second of a path with unknown rate
_OTHERS = ("Instinct", "Radeon", "Arc ", "Data Center GPU", "Gaudi", "[AMD", "Intel")  # GPUs that CUDA does not support
_BESIDE = 0.005  # seconds of a run besides its tries: latency, events, output
_QUEUED = 5  # copies of a try that do not count: the first, and those still queued at its end
_NUMBERED = re.compile(r"gpu[0-9]+")


def gpus_of(topology: Topology) -> Mapping[str, str]:
    """Return the addresses of GPUs that CUDA may support, by name; "" if sysfs does not have the GPU.

    Returns the GPUs numbered by the driver, because a container has only some of the machine's GPUs; all GPUs if the
    driver was not readable.
    """
    known = [one for one in topology.devices if one.kind == "gpu" and not any(word in one.name for word in _OTHERS)]
    named = {
        name: one.id if PCI_ADDRESS.fullmatch(one.id) else ""
        for one in known
        for name in (one.id, *one.aliases)
        if _NUMBERED.fullmatch(name)
    }
    return named or {one.id: one.id for one in known if PCI_ADDRESS.fullmatch(one.id)}


def nearest_memory(topology: Topology, gpu: str) -> str:
    """Return the NUMA node with the fewest hops to a GPU."""
    return next((name for name in routes(topology, gpu) if topology.kind(name) == "numa"), ANYWHERE)


def runs_in_scope(topology: Topology, runs: Iterable[Run], scope: Scope) -> list[Run]:
    """Return the runs with at least one end in scope, and only those to measure again, as many times as wanted."""

    def in_scope(name: str) -> bool:
        device = topology.find(name)
        return name == ANYWHERE or (device is not None and device.id in scope.ends)

    wanted = (run for run in runs if scope.again is None or frozenset(run) in scope.again)
    return [run for run in wanted if any(in_scope(end) for ends in run for end in ends)] * scope.rounds


def probe_of(
    name: str, report: Report, scope: Scope, runs: Sequence[Run], size: int, kinds: frozenset[tuple[str, ...]]
) -> Probe:
    """Return the probe for these runs with copies of `size` bytes, and its cost on a healthy machine."""
    topology = report.topology
    effort = scope.effort if scope.again is None else "quick"  # many short measurements show more than a few long ones
    pace = PACES[effort]
    known = gpus_of(topology)
    ends = dict.fromkeys(end for run in runs for one in run for end in one)
    gpus = {end: known[end] for end in ends if end in known}
    request = CopyRequest(effort=effort, gpus=gpus, runs=tuple(runs), owned=scope.owned)
    rates = [rate_of(topology, flows(run)) for run in runs]
    queued = sum(_QUEUED * size * len(run) / rate for run, rate in zip(runs, rates, strict=True))
    seconds = starting(len(gpus)) + len(runs) * (pace.whole + _BESIDE) + pace.tries * queued
    moved = sum(rates) * pace.whole + pace.tries * _QUEUED * size * sum(map(len, runs))
    return Probe(
        name=name,
        args=request.args,
        kinds=kinds,
        seconds=round(seconds, 2),
        bytes=int(moved),
        deadline=OPENING + 4 * seconds,
    )


def rate_of(topology: Topology, run: Iterable[Flow]) -> float:
    """Return the total bytes per second of a run's flows at the rated speed of their links."""
    routes_taken = {flow: sub_flows(topology, flow) for flow in run}
    found = fill(routes_taken, rated)
    each = [found[flow].rate if flow in found else _UNKNOWN for flow in routes_taken]
    return sum(rate if rate < float("inf") else _UNKNOWN for rate in each)
