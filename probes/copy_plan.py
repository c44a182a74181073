"""Which GPUs copies are planned for, and what a run of them costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..models.report import Report
from ..models.routes import rated, routes
from ..models.said import Flow
from ..models.shares import fill
from ..models.topology import Device, Topology
from ..models.ways import legs
from .copy_request import PACES, CopyRequest, Run, flows
from .cuda_gpus import OPENING, starting
from .pci_links import ADDRESS
from .pinned_memory import ANYWHERE
from .probe import Probe, Wanted

_UNKNOWN = 64e9  # bytes per second of a way of which no rate is known
_OTHERS = ("Instinct", "Radeon", "Arc ", "Data Center GPU", "Gaudi", "[AMD", "Intel")  # GPUs that CUDA does not know
_BESIDE = 0.005  # seconds of a run that are not its tries: latency, events, words


def gpus_of(topology: Topology) -> Mapping[str, Device]:
    """The GPUs that CUDA can ask for, which it does by their addresses, by the names that people know.

    Those that the driver has numbered; where nobody could ask it, all. A container has some of the machine's.
    """
    found = [one for one in topology.devices if one.kind == "gpu" and ADDRESS.fullmatch(one.id)]
    known = [one for one in found if not any(word in one.name for word in _OTHERS)]
    numbered = {alias: one for one in known for alias in one.aliases if alias.startswith("gpu")}
    return numbered or {one.id: one for one in known}


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
    name: str, report: Report, wanted: Wanted, runs: Sequence[Run], kinds: frozenset[tuple[str, ...]]
) -> Probe:  # fmt: skip
    """A process that does these runs, and what it costs where all is well."""
    topology, pace = report.topology, PACES[wanted.effort]
    known = gpus_of(topology)
    ends = dict.fromkeys(end for run in runs for one in run for end in one)
    gpus = {end: known[end].id for end in ends if end in known}
    request = CopyRequest(effort=wanted.effort, gpus=gpus, runs=tuple(runs), owned=wanted.owned)
    seconds = starting(len(gpus)) + len(runs) * (pace.whole + _BESIDE)
    moved = sum(rate_of(topology, flows(run)) for run in runs) * pace.whole
    return Probe(
        name=name, args=request.args, kinds=kinds, seconds=round(seconds, 2), bytes=int(moved),
        deadline=OPENING + 4 * seconds,
    )  # fmt: skip


def rate_of(topology: Topology, run: Iterable[Flow]) -> float:
    """Bytes per second of all flows of a run, together, at the rated speed of their links."""
    taken = {flow: legs(topology, flow) for flow in run}
    found = fill(taken, rated)
    each = [found[flow].rate if flow in found else _UNKNOWN for flow in taken]
    return sum(rate if rate < float("inf") else _UNKNOWN for rate in each)
