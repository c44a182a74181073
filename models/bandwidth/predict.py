"""The rates of simultaneous flows, their derivation, and the hop that limits each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..catalog.links import Links
from ..facts.records import Flow
from ..facts.units import BytesPerSecond, as_bytes, as_gigabytes
from ..graph.fair_share import Share, fill
from ..graph.flow_paths import sub_flows
from ..graph.topology import Hop, Topology
from .contention import able, enough_known, load_of, rate_without_sockets
from .efficiency import Attainable
from .message_size import Curve, curve, full


@dataclass(frozen=True, slots=True)
class Prediction:
    """Bytes per second in one direction: the rated rate of the links, and the rates that good machines reach."""

    rated: BytesPerSecond
    low: float
    typical: float
    high: float
    bottleneck: Hop
    seconds: float | None  # of the smallest message
    source: str


def predict(topology: Topology, flows: Iterable[Flow], known: Links | None = None) -> Mapping[Flow, Prediction]:
    """For each flow, with all others at the same time. `known` replaces the catalog's measurements of links.

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
        if reach and enough_known(routed[flow], share.bottleneck) and _long(flow, share.bottleneck):
            found[flow] = _prediction(flow, reach, whole[flow], low[flow], share, high[flow])
    return found


def _long(flow: Flow, hop: Hop) -> bool:
    """Whether the rate at this message size is known. An access to one memory has no message size."""
    short = flow.size is not None and flow.size < full(flow.op) and len(flow.ends) > 1
    return not short or curve(hop.links[0].grade, flow.op).half is not None


def _prediction(flow: Flow, reach: Attainable, whole: Share, low: Share, typical: Share, high: Share) -> Prediction:
    hop = typical.bottleneck
    size_of = curve(hop.links[0].grade, flow.op)
    slow, usual, fast = size_of.bounds(flow.size) if flow.size else (1.0, 1.0, 1.0)
    more = f" and {len(hop.links) - 1} more" if len(hop.links) > 1 else ""
    sized = f"; {usual:.0%} of that with messages of {as_bytes(flow.size)}" if flow.size and usual < 0.995 else ""
    # At other rates max-min fairness may give one flow less, so low and high are put in order.
    rates = low.rate * slow, typical.rate * usual, high.rate * fast
    least, most = min(rates[0], rates[1]), max(rates[1], rates[2])
    return Prediction(
        rated=whole.rate,
        low=_sized(least, flow, size_of),
        typical=_sized(rates[1], flow, size_of),
        high=_sized(most, flow, size_of),
        bottleneck=hop,
        seconds=size_of.latency,
        source=f"{hop.links[0].id}{more} can do {as_gigabytes(able(hop))}, {reach.typical:.0%} are reached: "
        f"{reach.source}{sized}",
    )


def _sized(rate: float, flow: Flow, size_of: Curve) -> float:
    """The rate, but not faster than the smallest message allows."""
    return min(rate, flow.size / size_of.latency) if flow.size and size_of.latency else rate
