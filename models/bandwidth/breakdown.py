"""Why a flow reaches its rate: the hops on its path, the rate of each hop, and the hop that limits the flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from ..facts.machine import Node
from ..facts.records import COLLECTIVES, Flow
from ..facts.units import as_bytes
from ..graph.flow_paths import SubFlow, sub_flows
from ..graph.routes import Route, path_type
from ..graph.topology import Hop, Topology
from ..inventory.snapshot import Snapshot
from ..report import Level
from .contention import Load, able, enough_known, load_of
from .expectations import capability, level_of, machine_name
from .link_levels import short
from .message_size import curve, full
from .predict import Prediction, predict


class Step(Struct, frozen=True, kw_only=True):
    """One hop of a path. Bytes per second in the direction of the path, over all parallel links."""

    sender: str  # short name; the ids of the links contain the address
    receiver: str
    links: tuple[str, ...]  # ids
    kind: str
    grade: str = ""
    rated: float | None = None
    trained: float | None = None
    share: float | None = None  # of the rate, for a good copy; None: not published, or no rate is known
    gives: float | None = None  # the rate times the share, for all flows together
    flows: int = 1  # how many of the given flows use the hop
    bottleneck: bool = False


class Explained(Struct, frozen=True, kw_only=True):
    """A flow, its expected rate, and its parallel paths. A copy has one path."""

    level: Level
    path_type: str | None  # as in nvidia-smi and NCCL; None: within one memory
    seconds: float | None  # of a message of a few bytes
    sized: float | None  # share of the long-message rate at the flow's message size; None: not published
    unknown: str | None  # why no rate is expected, in words
    ways: tuple[tuple[Step, ...], ...]


def explained(snapshot: Snapshot, flows: Iterable[Flow], concurrent: bool = False) -> tuple[Explained, ...]:
    """The flows in their order, one at a time or all at once. Flows without a path are left out."""
    several = tuple(dict.fromkeys(flows))
    groups = [several] if concurrent else [(flow,) for flow in several]
    return tuple(one for group in groups for one in _together(snapshot, group))


def _together(snapshot: Snapshot, flows: tuple[Flow, ...]) -> Iterator[Explained]:
    topology = snapshot.topology
    routed = {flow: sub_flows(topology, flow) for flow in flows}
    load = load_of(topology, routed)
    over = Counter(hop for several in routed.values() for hop in _hops(several))
    reached = predict(topology, flows, machine=machine_name(snapshot))
    for flow, several in routed.items():
        if not several:
            continue
        found = reached.get(flow)
        bottleneck = found.bottleneck if found else _tightest(several)
        level = _level(snapshot, flow, flows, found)
        yield Explained(
            level=level,
            path_type=_path_type(topology, several),
            seconds=found.seconds if found else None,
            sized=found.shares[1] if found and found.shares else None,
            unknown=None if level.expected else unknown(snapshot, level),
            ways=tuple(
                tuple(_step(topology, load, hop, over[hop], hop == bottleneck) for hop in path)
                for sub_flow in several
                for path in sub_flow
            ),
        )


def _hops(several: tuple[SubFlow, ...]) -> Iterable[Hop]:
    return dict.fromkeys(hop for sub_flow in several for path in sub_flow for hop in path)


def _tightest(several: tuple[SubFlow, ...]) -> Hop | None:
    """The tightest hop; None if a hop with an unknown rate may be tighter."""
    hop = min(_hops(several), key=able)
    return hop if enough_known(several, hop) else None


def _step(topology: Topology, load: Load, hop: Hop, flows: int, bottleneck: bool) -> Step:
    first = hop.links[0]
    rate, reach = able(hop), load.reach(hop)
    known = rate != float("inf")
    trained = [link.trained for link in hop.links if link.trained is not None]
    return Step(
        sender=short(topology.by_name[hop.sender]),
        receiver=short(topology.by_name[hop.receiver]),
        links=tuple(link.id for link in hop.links),
        kind=first.kind,
        grade=first.grade,
        rated=rate if known else None,
        trained=sum(trained) if len(trained) == len(hop.links) else None,
        share=reach.typical if reach and known else None,
        gives=rate * reach.typical if reach and known else None,
        flows=flows,
        bottleneck=bottleneck and known,
    )


def _level(snapshot: Snapshot, flow: Flow, flows: tuple[Flow, ...], found: Prediction | None) -> Level:
    """The level of one flow, from level_of; for a collective without a rate in the machine type, from its links. For
    several flows at once, the rate that the links leave for each.
    """
    level = level_of(snapshot, flow)
    capable = (capability(found),) if found else ()
    if len(flows) == 1:
        return level if level.expected else msgspec.structs.replace(level, expected=capable)
    beside = tuple(other.ends for other in flows if other != flow)
    rated = found.rated if found else level.rated
    return msgspec.structs.replace(level, beside=beside, rated=rated, expected=capable, observed=None)


def _path_type(topology: Topology, several: tuple[SubFlow, ...]) -> str | None:
    """The path type of the first path, without the memories at its ends."""
    path: Route = tuple(hop for hop in several[0][0] if hop.links[0].kind != "memory")
    return path_type(topology, path) if path else None


def unknown(snapshot: Snapshot, level: Level) -> str:
    """Why no rate is expected of a flow, in words."""
    if level.rated is not None and not _tightest(sub_flows(snapshot.topology, level.flow)):
        return "the rate of a link on its path is not known"
    if (
        level.size
        and level.size < full(level.op)
        and level.op not in COLLECTIVES
        and curve(level.link_class, level.op).half is None
    ):
        return f"no rate is published for {level.op} over {level.link_class} with messages of {as_bytes(level.size)}"
    if level.rated is not None:
        return f"no share is published for {level.op} over {level.link_class}"
    node = snapshot.of(Node).get("node")
    if node and node.virtual and not snapshot.site.trust_virtual_links:
        return "the hypervisor hides the links, and their rates are not published"
    return "no rate is known for any of these links"
