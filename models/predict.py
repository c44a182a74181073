"""What flows reach that run at the same time: the rate, why, and the hop that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .attainable import Attainable, attainable
from .catalog.links import Links
from .curve import Curve, curve
from .routes import RateOf, Route, rated
from .said import COLLECTIVES, EGRESS, Flow
from .shares import Share, fill
from .topology import FORWARDS, Hop, Topology
from .units import BytesPerSecond, as_gigabytes
from .ways import Leg, legs


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


@dataclass(frozen=True)
class _Load:
    """What runs over the hops: which operation, and whether it goes both ways at once."""

    topology: Topology
    op: Mapping[Hop, str] = field(default_factory=dict)
    known: Links | None = None

    def reach(self, hop: Hop) -> Attainable | None:
        """The shares of the hop's rate that are attainable under this load; None where nothing is published."""
        link = hop.links[0]
        back = Hop(hop.receiver, hop.sender, hop.links)
        duplex = back in self.op and hop.sender != hop.receiver
        return attainable(link.grade, self.op.get(hop, "copy"), _towards(hop), duplex, self.known)

    def rates(self, bound: str) -> RateOf:
        """Rates at "low", "typical" or "high". Where no share is published, it is not said that a hop limits."""

        def rate(hop: Hop) -> float:
            reach = self.reach(hop)
            return able(hop) * float(getattr(reach, bound)) if reach else float("inf")

        return rate


def predict(topology: Topology, flows: Iterable[Flow], known: Links | None = None) -> Mapping[Flow, Prediction]:
    """For each flow that has a way of which a share is published, beside all the others.

    `known` replaces what the catalog has measured of links.
    """
    taken = {flow: legs(topology, flow) for flow in flows}
    load = _Load(topology, _operations(topology, taken), known)
    full = fill(taken, able)
    low, typical, high = (fill(taken, load.rates(bound)) for bound in ("low", "typical", "high"))
    return {
        flow: _prediction(load, flow, full[flow], low[flow], share, high[flow])
        for flow, share in typical.items()
        if flow in full and flow in low and flow in high
    }


def able(hop: Hop) -> float:
    """What the hop can carry; where nobody says what its ends can do, what it runs at; infinite where neither."""
    whole = rated(hop)
    if whole != float("inf"):
        return whole
    trained = [link.trained for link in hop.links]
    return sum(rate for rate in trained if rate) if all(trained) else float("inf")


def _prediction(load: _Load, flow: Flow, full: Share, low: Share, typical: Share, high: Share) -> Prediction:
    hop = typical.full
    reach = load.reach(hop)
    assert reach
    size_of = curve(hop.links[0].grade, flow.op)
    slow, usual, fast = size_of.bounds(flow.size) if flow.size else (1.0, 1.0, 1.0)
    return Prediction(
        rated=full.rate,
        low=_sized(low.rate * slow, flow, size_of),
        typical=_sized(typical.rate * usual, flow, size_of),
        high=_sized(high.rate * fast, flow, size_of),
        bottleneck=hop,
        seconds=size_of.latency,
        source=f"{hop.links[0].id} can do {as_gigabytes(able(hop))}, {reach.typical:.0%} are reached: {reach.source}"
        + (f"; {usual:.0%} of that with messages of {flow.size} bytes" if usual < 0.995 else ""),
    )


def _sized(rate: float, flow: Flow, size_of: Curve) -> float:
    """No faster than the smallest message allows."""
    return min(rate, flow.size / size_of.latency) if flow.size and size_of.latency else rate


def _operations(topology: Topology, taken: Mapping[Flow, tuple[Leg, ...]]) -> Mapping[Hop, str]:
    found: dict[Hop, str] = {}
    for flow, several in taken.items():
        for way in (way for leg in several for way in leg):
            for hop in way:
                found.setdefault(hop, _operation(topology, flow, way, hop))
    return found


def _operation(topology: Topology, flow: Flow, way: Route, hop: Hop) -> str:
    """What an operation is to one hop, in the words of links.toml.

    "through" is a PCIe link between ports, on which no engine ends; "copy-far" crosses sockets; "staged" goes through
    host memory; disks read and write otherwise than NICs; memory at the end of a copy is read or written as by STREAM.
    """
    kind = hop.links[0].kind
    if kind == "memory":
        return flow.op if len(flow.ends) == 1 else "triad"
    if flow.op in COLLECTIVES or flow.op == "copy-sm":
        return flow.op
    if kind == "port":
        return "send" if flow.via == "net" or flow.op == EGRESS else "write"
    if flow.via == "host":
        return "staged"
    if kind == "pcie" and topology.by_name[hop.links[0].b].kind in FORWARDS:
        return "through"
    if kind == "pcie" and topology.by_name[hop.links[0].b].kind == "nvme":
        return f"disk-{flow.op}"
    if flow.op == EGRESS:
        return "write"
    far = any(other.links[0].kind == "interconnect" for other in way)
    return "copy-far" if far and flow.op == "copy" and kind == "pcie" else flow.op


def _towards(hop: Hop) -> str:
    """Whether a hop leads away from the processor or to it. Links of PCIe begin above, those of C2C at the GPU."""
    link = hop.links[0]
    if link.kind == "pcie":
        return "device" if hop.sender == link.a else "host"
    if link.kind == "c2c":
        return "host" if hop.sender == link.a else "device"
    return ""
