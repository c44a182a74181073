"""Localization: the fewest links, turnarounds or devices that all slow flows share and no fast flow clears.

A slow link slows every flow over it. A link is cleared if another flow over it was faster than the slow flows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ..bandwidth.peer_flows import noise
from ..facts.records import Flow
from ..graph.flow_paths import hops_of
from ..graph.routes import Route
from ..graph.set_cover import smallest_cover
from ..graph.topology import Topology
from ..inventory.snapshot import Snapshot
from ..report import Level

# hop: a link in one direction. link: both directions. turnaround: the highest device of a PCIe path, where it turns
# downwards. device: an end. pair: two ends, both directions.
Kind: TypeAlias = Literal["hop", "link", "turnaround", "device", "pair"]
# Of equal candidates, the most specific kind comes first.
_PREFERRED: Sequence[Kind] = ("hop", "link", "turnaround", "device", "pair")
_FREE = frozenset({"internal", "function", "port", "disk", "member"})  # kinds of links that are never slow themselves
_UP = ("package", "numa", "host", "host-bridge", "root-port", "upstream-port")  # from processors downwards
# A flow clears a candidate if it is faster than the slow flows by this factor, which exceeds the scatter of copies.
# _CLEARS_LEAST is the minimum if the noise is known; _ERRORS is in standard deviations.
_CLEARS, _CLEARS_LEAST, _ERRORS = 1.05, 1.01, 4
_FEWEST = 2  # flows; a single flow is reported by itself


class Candidate(Struct, frozen=True, order=True):
    """A candidate cause that flows have in common. A link is named by its two ends."""

    kind: Kind
    names: tuple[str, ...]


class Localization(Struct, frozen=True):
    """Slow flows and the candidate cause that explains them. `others` of the same kind explain them equally well."""

    candidate: Candidate
    others: tuple[Candidate, ...]
    flows: tuple[Flow, ...]


def localize(snapshot: Snapshot, levels: Collection[Level], slow: Collection[Flow]) -> Iterator[Localization]:
    """The candidate that covers most slow flows, then the next for the remaining flows. A single flow gets none."""
    seen = _seen(snapshot, levels)
    left = [flow for flow in dict.fromkeys(slow) if flow in seen.rate]
    over = defaultdict[Candidate, list[Flow]](list)
    for flow in seen.rate if left else ():  # nothing to compute for a healthy node
        for candidate in dict.fromkeys(candidates_of(snapshot, flow)):
            over[candidate].append(flow)
    uncleared = {one: flows for one, flows in over.items() if not _is_cleared(flows, left, seen)}
    ends = {flow: frozenset(_ends(snapshot.topology, flow)) for flow in left}

    def rank(one: Candidate, remaining: Collection[Flow]) -> tuple[object, ...]:
        inner = all(ends[flow].isdisjoint(one.names) for flow in remaining)
        return len(uncleared[one]), _PREFERRED.index(one.kind), inner, one

    for choice in smallest_cover(left, uncleared, rank, _FEWEST):
        first, flows = choice.candidate, choice.explained
        equal = (one for one, own in choice.covered.items() if one.kind == first.kind and own == flows)
        yield Localization(first, tuple(one for one in equal if one != first), tuple(f for f in left if f in flows))


class _Seen(Struct, frozen=True):
    """Observed rate of each flow, its share of the expected rate, and the factor that exceeds the noise."""

    rate: Mapping[Flow, float]
    share: Mapping[Flow, float]
    clears: Mapping[Flow, float]


def _seen(snapshot: Snapshot, levels: Collection[Level]) -> _Seen:
    clears = {}
    for level in levels:
        error = noise(snapshot, level.flow)
        clears[level.flow] = min(_CLEARS, max(_CLEARS_LEAST, 1 + _ERRORS * error)) if error else _CLEARS
    rate = {level.flow: level.observed for level in levels if level.observed}
    expected = {level.flow: level.expected[0].typical for level in levels if level.expected}
    return _Seen(rate, {flow: rate[flow] / expected[flow] for flow in rate if expected.get(flow)}, clears)


def _is_cleared(flows: Collection[Flow], slow: Collection[Flow], seen: _Seen) -> bool:
    """Whether a fast flow over the candidate was faster than its slow flows. Also true without any slow flow.

    The fast flow must also be nearer to its expected rate: copies to the host are a little faster than others over the
    same link. A flow that ran alone clears no candidate on which several simultaneous flows are slow.
    """
    runs = defaultdict[Hashable, float](float)
    for flow in flows:
        runs[_run(flow)] += seen.rate[flow]
    over = [flow for flow in flows if flow in slow]
    simultaneous = min((len(flow.beside) for flow in over), default=0)
    fast = [flow for flow in flows if flow not in slow and len(flow.beside) >= simultaneous]
    most = max((seen.clears[flow] * runs[_run(flow)] for flow in over), default=0.0)
    share = max((seen.clears[flow] * seen.share.get(flow, 0.0) for flow in over), default=0.0)
    return not over or any(runs[_run(flow)] > most and seen.share.get(flow, share + 1) > share for flow in fast)


def _run(flow: Flow) -> Hashable:
    """Key of flows that were measured at the same time."""
    return flow.op, flow.size, flow.via, frozenset((flow.ends, *flow.beside))


def candidates_of(snapshot: Snapshot, flow: Flow) -> Iterator[Candidate]:
    """All candidate causes of a slow flow."""
    path = hops_of(snapshot.topology, flow)
    for hop in path:
        memory = hop.sender == hop.receiver
        if hop.links[0].kind not in _FREE and not (memory and len(flow.ends) > 1):  # far faster than the links to it
            yield Candidate("hop", (hop.sender, hop.receiver))
            yield Candidate("link", tuple(sorted((hop.sender, hop.receiver))))
    yield from _turnarounds(snapshot.topology, flow, path)
    for end in _ends(snapshot.topology, flow):
        yield Candidate("device", (end,))
    if len(flow.ends) == 2:
        yield Candidate("pair", tuple(sorted(flow.ends)))


def _ends(topology: Topology, flow: Flow) -> Iterator[str]:
    for end in flow.ends:
        device = topology.find(end)
        yield device.id if device else end


def _turnarounds(topology: Topology, flow: Flow, hops: Route) -> Iterator[Candidate]:
    """For a copy over PCIe between two devices: the highest device on its path, a switch or part of a processor."""
    path = [hop for hop in hops if hop.sender != hop.receiver]  # without the memories at its ends
    between = [hop.sender for hop in path[1:]]
    over_pcie = {hop.links[0].kind for hop in path} <= {"pcie", "interconnect", *_FREE}
    if len(flow.ends) == 2 and over_pcie and not any(topology.kind(end) in _UP for end in flow.ends):
        heights = [(_UP.index(kind), name) for name in between if (kind := topology.kind(name)) in _UP]
        if heights:
            yield Candidate("turnaround", (min(heights)[1],))
