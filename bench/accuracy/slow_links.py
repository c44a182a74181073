"""Faults without a state: copies over a link are slower than they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random

from msgspec.structs import replace

from bench.accuracy.faults import Fault, Kind, below, both_ways, drawn
from bench.accuracy.healthy_nodes import HealthyNode
from bench.accuracy.measured import SIZE, Loss, slowed
from linkgauge.models.diagnosis.localization import candidates_of
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.flow_paths import hops_of
from linkgauge.models.graph.topology import Hop

SIZES = ((0.03, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 0.6))
_FEWEST = 4  # flows of a kind that keep their rate; among fewer, the slow one cannot be identified
# a finding names the device below these, or the device at the end
_ABOVE = ("root-port", "downstream-port", "host-bridge", "fabric")
_FULLY = 0.9  # the least share of a hop's loss that a flow loses if the hop is its tightest


def _size(chance: Random) -> float:
    return chance.uniform(*chance.choice(SIZES))


def link(kinds: tuple[str, ...], one_way: bool = False) -> Kind:
    """A link of one of these kinds, in both directions or in one."""

    def draw(node: HealthyNode, chance: Random) -> Fault | None:
        places = sorted({(hop.sender, hop.receiver) for hop in _tight(node) if hop.links[0].kind in kinds})
        ends = drawn(chance, places)
        if ends is None:
            return None
        size = _size(chance)
        loss = Loss({ends: 1 - size}) if one_way else both_ways(*ends, 1 - size)
        return _of(node, loss, size)

    return draw


def uplink(node: HealthyNode, chance: Random) -> Fault | None:
    """The link above a switch."""
    places = sorted(
        {
            (hop.sender, hop.receiver)
            for hop in _tight(node)
            if hop.links[0].kind == "pcie" and _kind(node, hop.links[0].b) == "upstream-port"
        }
    )
    ends = drawn(chance, places)
    if ends is None:
        return None
    size = _size(chance)
    return _of(node, both_ways(*ends, 1 - size), size)


def pair(node: HealthyNode, chance: Random) -> Fault | None:
    """Two GPUs, in both directions."""
    ends = drawn(chance, _pairs(node))
    if ends is None:
        return None
    size = _size(chance)
    loss = Loss(pairs={ends: 1 - size, ends[::-1]: 1 - size})
    about = frozenset(name for end in ends for name in _known(node, end))
    hops = hops_of(node.snapshot.topology, Flow("copy", ends, SIZE))
    joined = len({end for hop in hops for end in (hop.sender, hop.receiver)}) == 2  # over direct links
    subjects = {"-".join(ends), "-".join(ends[::-1]), *(about if joined else ())}
    return Fault("bandwidth-low", frozenset(subjects), about, loss=loss, size=size)


@cache
def _pairs(node: HealthyNode) -> list[tuple[str, ...]]:
    """Pairs of GPUs with a turnaround that enough other pairs share.

    A single pair there would point to the turnaround.
    """
    turnarounds = {
        flow: next((s for s in candidates_of(node.snapshot, flow) if s.kind == "turnaround"), None)
        for flow in node.rates
    }
    between = [flow for flow in node.rates if "host" not in flow.ends]
    over = Counter(turnarounds[flow] for flow in between)
    return sorted(flow.ends for flow in between if over[turnarounds[flow]] >= 3 * _FEWEST)


@cache
def _tight(node: HealthyNode) -> tuple[Hop, ...]:
    return tuple(_limiting_hops(node))


def _limiting_hops(node: HealthyNode) -> Iterator[Hop]:
    """Hops that limit at least one flow and leave enough equal flows unchanged."""
    over: dict[Hop, list[Flow]] = {}
    for flow in node.rates:
        for hop in hops_of(node.snapshot.topology, flow):
            over.setdefault(hop, []).append(flow)
    for hop, flows in over.items():
        rates = {flow: node.rates[flow] for flow in flows}
        slowed_rates = slowed(node.snapshot.topology, rates, [Loss({(hop.sender, hop.receiver): 0.5})])
        limited_flows = [flow for flow in flows if slowed_rates[flow] < (1 - 0.5 * _FULLY) * node.rates[flow]]
        if limited_flows and visible(node, frozenset(limited_flows)):
            yield hop


def visible(node: HealthyNode, hit: frozenset[Flow]) -> bool:
    """Whether most flows of each kind keep their rate, so that the slow ones can be identified."""
    kinds = Counter(_manner(node, flow) for flow in node.rates)
    slow = Counter(_manner(node, flow) for flow in hit)
    return all(kinds[kind] - slow[kind] >= max(_FEWEST, slow[kind] + 1) for kind in slow)


def _manner(node: HealthyNode, flow: Flow) -> tuple[object, ...]:
    """The key of equal flows: rate and direction."""
    return round(node.rates[flow] / 1e8), *(end == "host" for end in flow.ends)


def _of(node: HealthyNode, loss: Loss, size: float) -> Fault:
    """The fault of a loss. Its subjects are the ends of all links that exactly the same flows cross."""
    one_way = len(loss.hops) == 1
    over: dict[tuple[str, ...], set[Flow]] = {}
    for flow in node.rates:
        for hop in hops_of(node.snapshot.topology, flow):
            ends = (hop.sender, hop.receiver)
            over.setdefault(ends if one_way else tuple(sorted(ends)), set()).add(flow)
        for end in flow.ends if not one_way else ():
            over.setdefault((_known(node, end)[0],), set()).add(flow)
    slow = next(iter(loss.hops))
    hit = over[slow if one_way else tuple(sorted(slow))]
    alike = {end for ends, flows in over.items() if flows == hit for end in ends}
    names = [name for end in alike if _kind(node, end) not in _ABOVE for name in _known(node, end)]
    subjects = frozenset([*names, *(flow.subject for flow in hit if len(hit) == 1)])
    about = frozenset(name for end in slow for name in _concerned(node, end, slow))
    return Fault("bandwidth-low", subjects, about, loss=loss, size=size)


def _concerned(node: HealthyNode, end: str, slow: tuple[str, ...]) -> frozenset[str]:
    """The devices below a PCIe link; the GPU at the end of another link; all GPUs for a link of processors or
    memory.
    """
    kind = _kind(node, end)
    lower = node.snapshot.topology.link_below.get(end)
    if lower is not None and lower.a in slow:
        return below(node, end)
    if kind == "gpu":
        return frozenset(_known(node, end))
    if any(_kind(node, one) == "gpu" or one in node.snapshot.topology.link_below for one in slow):
        return frozenset()
    return frozenset(
        name for one in node.snapshot.topology.devices if one.kind == "gpu" for name in _known(node, one.id)
    )


def _known(node: HealthyNode, name: str) -> list[str]:
    device = node.snapshot.topology.find(name)
    return [device.id, *device.aliases] if device else [name]


def _kind(node: HealthyNode, name: str) -> str:
    device = node.snapshot.topology.find(name)
    return device.kind if device else name


def resized(fault: Fault, size: float) -> Fault:
    """The fault with another lost share."""
    loss = replace(
        fault.loss,
        hops=dict.fromkeys(fault.loss.hops, 1 - size),
        pairs=dict.fromkeys(fault.loss.pairs, 1 - size),
    )
    return replace(fault, loss=loss, size=size)


KINDS: Mapping[str, Kind] = {
    "a PCIe link is slow, no state": link(("pcie",)),
    "one direction of a PCIe link": link(("pcie",), one_way=True),
    "a switch's uplink is slow, no state": uplink,
    "all NVLinks of a GPU are slow": link(("nvlink", "xgmi", "c2c")),
    "the way between two GPUs": pair,
}
