"""Faults without a state: copies over a link are slower than they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random

from msgspec.structs import replace

from bench.accuracy.beds import Bed
from bench.accuracy.faults import Fault, Kind, below, both_ways, drawn
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

    def draw(bed: Bed, chance: Random) -> Fault | None:
        places = sorted({(hop.sender, hop.receiver) for hop in _tight(bed) if hop.links[0].kind in kinds})
        ends = drawn(chance, places)
        if ends is None:
            return None
        size = _size(chance)
        loss = Loss({ends: 1 - size}) if one_way else both_ways(*ends, 1 - size)
        return _of(bed, loss, size)

    return draw


def uplink(bed: Bed, chance: Random) -> Fault | None:
    """The link above a switch."""
    places = sorted(
        {
            (hop.sender, hop.receiver)
            for hop in _tight(bed)
            if hop.links[0].kind == "pcie" and _kind(bed, hop.links[0].b) == "upstream-port"
        }
    )
    ends = drawn(chance, places)
    if ends is None:
        return None
    size = _size(chance)
    return _of(bed, both_ways(*ends, 1 - size), size)


def pair(bed: Bed, chance: Random) -> Fault | None:
    """Two GPUs, in both directions."""
    ends = drawn(chance, _pairs(bed))
    if ends is None:
        return None
    size = _size(chance)
    loss = Loss(pairs={ends: 1 - size, ends[::-1]: 1 - size})
    about = frozenset(name for end in ends for name in _known(bed, end))
    hops = hops_of(bed.snapshot.topology, Flow("copy", ends, SIZE))
    joined = len({end for hop in hops for end in (hop.sender, hop.receiver)}) == 2  # over direct links
    subjects = {"-".join(ends), "-".join(ends[::-1]), *(about if joined else ())}
    return Fault("bandwidth-low", frozenset(subjects), about, loss=loss, size=size)


@cache
def _pairs(bed: Bed) -> list[tuple[str, ...]]:
    """Pairs of GPUs with a turnaround that enough other pairs share.

    A single pair there would point to the turnaround.
    """
    turnarounds = {
        flow: next((s for s in candidates_of(bed.snapshot, flow) if s.kind == "turnaround"), None) for flow in bed.rates
    }
    between = [flow for flow in bed.rates if "host" not in flow.ends]
    over = Counter(turnarounds[flow] for flow in between)
    return sorted(flow.ends for flow in between if over[turnarounds[flow]] >= 3 * _FEWEST)


@cache
def _tight(bed: Bed) -> tuple[Hop, ...]:
    return tuple(_limiting_hops(bed))


def _limiting_hops(bed: Bed) -> Iterator[Hop]:
    """Hops that limit at least one flow and leave enough equal flows unchanged."""
    over: dict[Hop, list[Flow]] = {}
    for flow in bed.rates:
        for hop in hops_of(bed.snapshot.topology, flow):
            over.setdefault(hop, []).append(flow)
    for hop, flows in over.items():
        rates = {flow: bed.rates[flow] for flow in flows}
        slowed_rates = slowed(bed.snapshot.topology, rates, [Loss({(hop.sender, hop.receiver): 0.5})])
        limited_flows = [flow for flow in flows if slowed_rates[flow] < (1 - 0.5 * _FULLY) * bed.rates[flow]]
        if limited_flows and visible(bed, frozenset(limited_flows)):
            yield hop


def visible(bed: Bed, hit: frozenset[Flow]) -> bool:
    """Whether most flows of each kind keep their rate, so that the slow ones can be identified."""
    kinds = Counter(_manner(bed, flow) for flow in bed.rates)
    slow = Counter(_manner(bed, flow) for flow in hit)
    return all(kinds[kind] - slow[kind] >= max(_FEWEST, slow[kind] + 1) for kind in slow)


def _manner(bed: Bed, flow: Flow) -> tuple[object, ...]:
    """The key of equal flows: rate and direction."""
    return round(bed.rates[flow] / 1e8), *(end == "host" for end in flow.ends)


def _of(bed: Bed, loss: Loss, size: float) -> Fault:
    """The fault of a loss. Its subjects are the ends of all links that exactly the same flows cross."""
    one_way = len(loss.hops) == 1
    over: dict[tuple[str, ...], set[Flow]] = {}
    for flow in bed.rates:
        for hop in hops_of(bed.snapshot.topology, flow):
            ends = (hop.sender, hop.receiver)
            over.setdefault(ends if one_way else tuple(sorted(ends)), set()).add(flow)
        for end in flow.ends if not one_way else ():
            over.setdefault((_known(bed, end)[0],), set()).add(flow)
    slow = next(iter(loss.hops))
    hit = over[slow if one_way else tuple(sorted(slow))]
    alike = {end for ends, flows in over.items() if flows == hit for end in ends}
    names = [name for end in alike if _kind(bed, end) not in _ABOVE for name in _known(bed, end)]
    subjects = frozenset([*names, *(flow.subject for flow in hit if len(hit) == 1)])
    about = frozenset(name for end in slow for name in _concerned(bed, end, slow))
    return Fault("bandwidth-low", subjects, about, loss=loss, size=size)


def _concerned(bed: Bed, end: str, slow: tuple[str, ...]) -> frozenset[str]:
    """The devices below a PCIe link; the GPU at the end of another link; all GPUs for a link of processors or
    memory.
    """
    kind = _kind(bed, end)
    lower = bed.snapshot.topology.link_below.get(end)
    if lower is not None and lower.a in slow:
        return below(bed, end)
    if kind == "gpu":
        return frozenset(_known(bed, end))
    if any(_kind(bed, one) == "gpu" or one in bed.snapshot.topology.link_below for one in slow):
        return frozenset()
    return frozenset(name for one in bed.snapshot.topology.devices if one.kind == "gpu" for name in _known(bed, one.id))


def _known(bed: Bed, name: str) -> list[str]:
    device = bed.snapshot.topology.find(name)
    return [device.id, *device.aliases] if device else [name]


def _kind(bed: Bed, name: str) -> str:
    device = bed.snapshot.topology.find(name)
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
