"""Which GPUs copies are planned for, and what a run of them costs."""

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
from ..probe import Probe, Wanted
from .copy_request import PACES, CopyRequest, Run, flows
from .cuda_gpus import OPENING, starting
from .pinned_memory import ANYWHERE

_UNKNOWN = 64e9  # bytes per second of a way of which no rate is known
_OTHERS = ("Instinct", "Radeon", "Arc ", "Data Center GPU", "Gaudi", "[AMD", "Intel")  # GPUs that CUDA does not know
_BESIDE = 0.005  # seconds of a run that are not its tries: latency, events, words
_QUEUED = 5  # copies of a try that do not count: the first, and those that are queued when it ends
_NUMBERED = re.compile(r"gpu[0-9]+")


def gpus_of(topology: Topology) -> Mapping[str, str]:
    """The addresses of the GPUs that CUDA may know, by their names; "" where sysfs does not have them.

    Those that the driver has numbered; where nobody could ask it, all. A container has some of the machine's.
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
    """The NUMA node with the fewest hops to a GPU."""
    return next((name for name in routes(topology, gpu) if topology.kind(name) == "numa"), ANYWHERE)


def wanted_runs(topology: Topology, runs: Iterable[Run], wanted: Wanted) -> list[Run]:
    """Those of which any end is wanted."""

    def is_wanted(name: str) -> bool:
        device = topology.find(name)
        return name == ANYWHERE or (device is not None and device.id in wanted.ends)

    return [run for run in runs if any(is_wanted(end) for ends in run for end in ends)]


def probe_of(
    name: str, report: Report, wanted: Wanted, runs: Sequence[Run], size: int, kinds: frozenset[tuple[str, ...]]
) -> Probe:
    """A process that does these runs with copies of `size` bytes, and what it costs where all is well."""
    topology, pace = report.topology, PACES[wanted.effort]
    known = gpus_of(topology)
    ends = dict.fromkeys(end for run in runs for one in run for end in one)
    gpus = {end: known[end] for end in ends if end in known}
    request = CopyRequest(effort=wanted.effort, gpus=gpus, runs=tuple(runs), owned=wanted.owned)
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
    """Bytes per second of all flows of a run, together, at the rated speed of their links."""
    taken = {flow: sub_flows(topology, flow) for flow in run}
    found = fill(taken, rated)
    each = [found[flow].rate if flow in found else _UNKNOWN for flow in taken]
    return sum(rate if rate < float("inf") else _UNKNOWN for rate in each)
