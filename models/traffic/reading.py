"""A reading: what is known of the links of a node at one time, from its sources or from a report of its service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from ..facts.counters import ERRORS
from ..facts.gpu import Driver, Gpu
from ..facts.machine import Net, Node, Port
from ..facts.merge import merge, of
from ..facts.reason import Reason
from ..facts.records import NotChecked, Observation, Record
from ..facts.units import from_utc
from ..graph.topology import Topology
from ..report import Report, ReportedObservation
from .carriers import ORDER, RECEIVED, SENT

Key: TypeAlias = tuple[str, str]  # id of the device, quantity
_NODE = "node"
_COUNTED = frozenset(name for names in (*RECEIVED.values(), *SENT.values()) for name in names) | ERRORS
GPU_LINKS = ("nvlink", "c2c")  # kinds of carriers that NVIDIA's driver lists
# Kinds of facts, and the carriers that are not known without them.
_NEEDED_BY: Mapping[str, tuple[str, ...]] = {
    "Gpu": GPU_LINKS,
    "GpuLink": GPU_LINKS,
    "Net": ("net",),
    "Rdma": ("port",),
    "Port": ("port",),
    "Disk": ("disk",),
    "Pci": ("pcie",),
    "cycle": ORDER,
}


class Count(Struct, frozen=True):
    """A counter at a time in seconds since 1970."""

    value: float
    at: float


class Reading(Struct, frozen=True, kw_only=True):
    """The links and counters of a node. Times in seconds since 1970."""

    node: str | None
    at: float
    topology: Topology
    counts: Mapping[Key, Count]
    gpus: Mapping[str, Gpu] = field(default_factory=dict)  # by device id; reports have none
    gaps: Mapping[str, str] = field(default_factory=dict)  # id of a device -> why it could not be read
    unread: Mapping[str, str] = field(default_factory=dict)  # kind of carriers -> why they could not be read
    states: Mapping[str, str] = field(default_factory=dict)  # name of a port -> why it carries nothing: "down"
    ahead: float | None = None  # seconds that the clock is ahead of a monotonic clock; None: not known
    lasts: float = 60.0  # seconds that a counter and its rate are valid


def of_records(
    records: Iterable[Record], topology: Topology, at: float, lasts: float, ahead: float | None = None
) -> Reading:
    """The reading of a machine from the records of its sources and its topology."""
    every = list(records)
    missed = [one for one in every if isinstance(one, NotChecked)]
    gpus = _gpus(every, topology)
    return Reading(
        node=next((one.hostname for one in every if isinstance(one, Node)), None),
        at=at,
        topology=topology,
        counts=_latest(
            ((_id(topology, one.about), one.quantity), Count(one.value, one.at))
            for one in every
            if isinstance(one, Observation) and isinstance(one.about, str) and one.quantity in _COUNTED
        ),
        gpus=gpus,
        gaps=_gaps(topology, missed) | {key: gpu.failure for key, gpu in gpus.items() if gpu.failure},
        unread=_unread(missed, (one.failure for one in every if isinstance(one, Driver))),
        states=_states(every),
        ahead=ahead,
        lasts=lasts,
    )


def of_report(report: Report, at: float, lasts: float) -> Reading:
    """The reading of a service. The times of its observations are whole seconds; those of its runs are exact."""
    topology = report.topology
    began = {run.name: run.at for run in report.runs}
    return Reading(
        node=report.node,
        at=at,
        topology=topology,
        counts={
            (_id(topology, one.about), one.quantity): Count(
                one.value, began.get(_source(topology, one)) or from_utc(one.at)
            )
            for one in report.observations
            if one.quantity in _COUNTED
        },
        gaps=_gaps(topology, report.not_checked),
        unread=_unread(
            report.not_checked,
            (one.fact or one.message for one in report.findings if one.code == "gpu-driver-failed"),
        ),
        lasts=lasts,
    )


def _source(topology: Topology, one: ReportedObservation) -> str:
    """The source that reads the counter."""
    if one.quantity.startswith("aer_"):
        return "pci_links"
    return {"netdev": "net", "port": "rdma"}.get(topology.kind(one.about), "gpus")


def _latest(counts: Iterable[tuple[Key, Count]]) -> Mapping[Key, Count]:
    """Two sources may read a counter at their own intervals."""
    latest: dict[Key, Count] = {}
    for key, one in counts:
        if key not in latest or latest[key].at <= one.at:
            latest[key] = one
    return latest


def _gpus(records: Iterable[Record], topology: Topology) -> Mapping[str, Gpu]:
    facts, _ = merge([one for one in records if isinstance(one, Gpu)])
    return {_id(topology, gpu.address or key): gpu for key, gpu in of(facts, Gpu).items()}


def _states(records: Iterable[Record]) -> Mapping[str, str]:
    """The ports and network devices that carry nothing, with their state in few words."""
    states: dict[str, str] = {}
    for one in records:
        if isinstance(one, Port) and one.state not in ("ACTIVE", None):
            states[one.key] = ", ".join(part.lower() for part in (one.state, one.physical_state) if part)
        elif isinstance(one, Net) and (one.enabled is False or one.carrier is False):
            states[one.key] = "disabled" if one.enabled is False else "no carrier"
    return states


def _gaps(topology: Topology, missed: Iterable[NotChecked]) -> dict[str, str]:
    """Devices that could not be read, or whose counters could not be read."""
    gaps: dict[str, str] = {}
    for one in missed:
        kind, _, part = one.what.partition(".")
        if kind in _NEEDED_BY and one.subject != _NODE and (not part or part.endswith("counters")):
            gaps.setdefault(_id(topology, one.subject), one.why)
    return gaps


def _unread(missed: Iterable[NotChecked], failures: Iterable[str | None]) -> Mapping[str, str]:
    """Kinds of carriers of which none could be read."""
    unread: dict[str, str] = {}
    for failure in filter(None, failures):
        unread.update(dict.fromkeys(GPU_LINKS, f"GPU driver: {failure}"))
    for one in missed:
        kind, _, part = one.what.partition(".")
        if one.subject == _NODE and (not part or one.reason is Reason.NO_ANSWER):
            unread.update(dict.fromkeys(_NEEDED_BY.get(kind, ()), one.why))
    return unread


def _id(topology: Topology, name: str) -> str:
    device = topology.find(name)
    return device.id if device else name
