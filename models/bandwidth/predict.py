"""The rates of simultaneous flows, their derivation, and the hop that limits each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ..catalog.links import Links
from ..facts.records import COLLECTIVES, Flow
from ..facts.units import BytesPerSecond, as_bytes, as_gigabytes
from ..graph.fair_share import Share, fill
from ..graph.flow_paths import sub_flows
from ..graph.topology import FABRIC, Hop, Topology
from .collective_algorithms import RING, SWITCHED, algorithms_of, known_algorithms
from .collectives import array_of, bus_factor
from .contention import able, enough_known, load_of, rate_without_sockets
from .efficiency import Attainable, attainable
from .message_size import curve, full
from .message_times import bounds, once, share_of
from .network_tiers import Level

Shares: TypeAlias = tuple[float, float, float]  # low, typical, high
REDUCING = ("nvlink4", "nvlink5")  # grades whose switches reduce arrays (NVLink SHARP)
_Of: TypeAlias = "tuple[str, Links | None]"  # the machine type, and measurements that replace those of the catalog
_LONG: Shares = (1.0, 1.0, 1.0)


class Prediction(Struct, frozen=True):
    """Bytes per second in one direction: the rated rate of the links, and the rates that good machines reach."""

    rated: BytesPerSecond
    low: float
    typical: float
    high: float
    bottleneck: Hop
    seconds: float | None  # of the smallest message
    source: str
    shares: Shares | None  # of the rates of long messages, at this size


def predict(
    topology: Topology, flows: Iterable[Flow], known: Links | None = None, machine: str = ""
) -> Mapping[Flow, Prediction]:
    """For each flow, with all others at the same time. `known` replaces the catalog's measurements of links. `machine`
    is the name of the machine type, whose own measurements of small messages come first.

    Left out are flows without a path, over a link of unknown rate, or with a bottleneck without a published share.
    Short messages are left out too if no curve over the message size is published for the bottleneck.
    """
    routed = {flow: sub_flows(topology, flow) for flow in flows}
    load = load_of(topology, routed, known)
    whole = fill(routed, rate_without_sockets)
    low, typical, high = (fill(routed, load.rates(bound)) for bound in ("low", "typical", "high"))
    found: dict[Flow, Prediction] = {}
    for flow, share in typical.items():
        reach = load.reach(share.bottleneck)
        if reach and enough_known(routed[flow], share.bottleneck) and _known(flow, share.bottleneck, known):
            found[flow] = _prediction(flow, reach, whole[flow], (low[flow], share, high[flow]), (machine, known))
    return found


def _known(flow: Flow, hop: Hop, known: Links | None) -> bool:
    """Whether the rate at this message size is known. An access to one memory has no message size."""
    if flow.op in COLLECTIVES:  # published for links between devices, not for memories
        return attainable(hop.links[0].grade, RING, known=known) is not None
    short = flow.size is not None and flow.size < full(flow.op) and len(flow.ends) > 1
    return not short or curve(hop.links[0].grade, flow.op).half is not None


def _prediction(flow: Flow, reach: Attainable, whole: Share, bounds: tuple[Share, ...], of: _Of) -> Prediction:
    hop = bounds[1].bottleneck
    more = f" and {len(hop.links) - 1} more" if len(hop.links) > 1 else ""
    if flow.op in COLLECTIVES:
        gain, shares, latency, told = _collective(flow, hop, whole.rate, reach, of)
    else:
        size_of = curve(hop.links[0].grade, flow.op)
        gain, latency, told = _LONG, size_of.latency, f"{reach.typical:.0%} are reached: {reach.source}"
        shares = size_of.bounds(flow.size) if flow.size and size_of.half is not None else None
    usual = shares[1] if shares else 1.0
    sized = f"; {usual:.0%} of that with messages of {as_bytes(flow.size)}" if flow.size and usual < 0.995 else ""
    # At other rates max-min fairness may give one flow less, so low and high are put in order.
    rates = [one.rate * by * part for one, by, part in zip(bounds, gain, shares or _LONG, strict=True)]
    least, most = min(rates[:2]), max(rates[1:])
    return Prediction(
        rated=whole.rate,
        low=_sized(least, flow, latency),
        typical=_sized(rates[1], flow, latency),
        high=_sized(most, flow, latency),
        bottleneck=hop,
        seconds=latency,
        source=f"{hop.links[0].id}{more} can do {as_gigabytes(able(hop))}, {told}{sized}",
        shares=shares,
    )


def _collective(
    flow: Flow, hop: Hop, rate: float, reach: Attainable, of: _Of
) -> tuple[Shares, Shares | None, float | None, str]:
    """What the algorithm of a collective gains over the shares of `reach`, its shares at the message size, the latency,
    and the measurements, for the slowest, usual and fastest good machines.
    """
    grade, op, ranks = hop.links[0].grade, flow.op.removesuffix("-nvls"), len(flow.ends)
    switched = FABRIC in (hop.sender, hop.receiver) and grade in REDUCING
    machine, known = of
    algorithms = algorithms_of(grade, known) if known else known_algorithms(grade, machine)
    level = [Level("node", ranks, rate)]
    if flow.op != op:  # it is known that the switches reduce
        paces = tuple(once(level[0], each.near[flow.op]) for each in algorithms.each())
        gain = _LONG
    else:
        paces = bounds(op, level, algorithms, "node", switched)
        alone = bounds(op, level, algorithms, "node")
        gain = _three(other.per_byte / one.per_byte for one, other in zip(paces, alone, strict=True))
    told = f"{reach.typical:.0%} are reached: {reach.source}"
    if gain[1] != 1.0:
        near = algorithms.near[SWITCHED]
        bus = near.share * bus_factor(op, ranks)
        told = f"{bus:.0%} are reached as bus bandwidth with reductions in the switches: {near.source}"
    shares = None if flow.size is None else _three(share_of(pace, array_of(op, flow.size, ranks)) for pace in paces)
    return gain, shares, paces[1].latency or None, told


def _three(values: Iterable[float]) -> Shares:
    low, typical, high = values
    return low, typical, high


def _sized(rate: float, flow: Flow, latency: float | None) -> float:
    """A copy is not faster than the smallest message allows. The shares of collectives contain the latency."""
    return min(rate, flow.size / latency) if flow.size and latency and flow.op not in COLLECTIVES else rate
