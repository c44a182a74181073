"""What flows reach that run at the same time: the rate, why, and the hop that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .attainable import Attainable
from .catalog.links import Links
from .curve import Curve, curve
from .load import able, load_of
from .said import Flow
from .shares import Share, fill
from .topology import Hop, Topology
from .units import BytesPerSecond, as_bytes, as_gigabytes
from .ways import legs


@dataclass(frozen=True, slots=True)
class Prediction:
    """Bytes per second of one direction: what the links are rated at, and what good machines reach over them."""

    rated: BytesPerSecond
    low: float
    typical: float
    high: float
    bottleneck: Hop
    seconds: float | None  # of the smallest message
    source: str


def predict(topology: Topology, flows: Iterable[Flow], known: Links | None = None) -> Mapping[Flow, Prediction]:
    """For each flow, beside all the others. Left out is what has no way, and what is held by a hop of which nothing is
    published. `known` replaces what the catalog has measured of links.
    """
    taken = {flow: legs(topology, flow) for flow in flows}
    load = load_of(topology, taken, known)
    whole = fill(taken, able)
    low, typical, high = (fill(taken, load.rates(bound)) for bound in ("low", "typical", "high"))
    found: dict[Flow, Prediction] = {}
    for flow, share in typical.items():
        reach = load.reach(share.full)
        if reach:
            found[flow] = _prediction(flow, reach, whole[flow], low[flow], share, high[flow])
    return found


def _prediction(flow: Flow, reach: Attainable, whole: Share, low: Share, typical: Share, high: Share) -> Prediction:
    hop = typical.full
    size_of = curve(hop.links[0].grade, flow.op)
    slow, usual, fast = size_of.bounds(flow.size) if flow.size else (1.0, 1.0, 1.0)
    more = f" and {len(hop.links) - 1} more" if len(hop.links) > 1 else ""
    sized = f"; {usual:.0%} of that with messages of {as_bytes(flow.size)}" if flow.size and usual < 0.995 else ""
    return Prediction(
        rated=whole.rate,
        low=_sized(low.rate * slow, flow, size_of),
        typical=_sized(typical.rate * usual, flow, size_of),
        high=_sized(high.rate * fast, flow, size_of),
        bottleneck=hop,
        seconds=size_of.latency,
        source=f"{hop.links[0].id}{more} can do {as_gigabytes(able(hop))}, {reach.typical:.0%} are reached: "
        f"{reach.source}{sized}",
    )


def _sized(rate: float, flow: Flow, size_of: Curve) -> float:
    """No faster than the smallest message allows."""
    return min(rate, flow.size / size_of.latency) if flow.size and size_of.latency else rate
