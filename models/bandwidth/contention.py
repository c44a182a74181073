"""What runs over the hops of a node at one time, and so which share of its rate each of them reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..catalog.chipsets import Limit
from ..catalog.links import Links
from ..facts.records import COLLECTIVES, EGRESS, SOCKETS, Flow
from ..facts.units import as_gigabytes
from ..graph.flow_paths import SubFlow
from ..graph.routes import RateOf, Route, rated
from ..graph.topology import FORWARDS, Hop, Topology
from .chipset_limits import crowded
from .efficiency import Attainable, attainable

_UNLIMITED = float("inf")
_CARRY = frozenset({"pcie", "port", "loopback", "nvlink", "xgmi", "c2c"})  # what has a rate, whether it was read or not
_ACROSS = frozenset({"copy", "write", "read", "send", EGRESS})  # what is slower from one socket to another


@dataclass(frozen=True)
class Load:
    """Which operations run over each hop. `known` replaces what the catalog has measured of links."""

    op: Mapping[Hop, Collection[str]] = field(default_factory=dict)
    known: Links | None = None
    crowded: Mapping[Hop, Limit] = field(default_factory=dict)  # held by the chipset rather than by the link

    def reach(self, hop: Hop) -> Attainable | None:
        """The shares of the hop's rate that are attainable under this load; None where nothing is published.

        Of several operations over one hop the slowest decides for all: what a mixture reaches nobody has published.
        """
        if hop in self.crowded:
            return _of_chipset(self.crowded[hop], able(hop))
        back = Hop(hop.receiver, hop.sender, hop.links)
        duplex = back in self.op and hop.sender != hop.receiver
        grade, where = hop.links[0].grade, towards(hop)
        each = [attainable(grade, op, where, duplex, self.known) for op in self.op.get(hop, ("copy",))]
        return min((one for one in each if one), key=lambda one: one.typical, default=None)

    def rates(self, bound: str) -> RateOf:
        """Rates at "low", "typical" or "high".

        Where no share is published a hop carries no more than it is rated at. What joins sockets limits nothing here:
        its rate is the least that boards have, and what crosses it has shares of its own ("copy-far").
        """

        def rate(hop: Hop) -> float:
            reach = self.reach(hop)
            return counted(hop) * float(getattr(reach, bound)) if reach else counted(hop)

        return rate


def load_of(topology: Topology, taken: Mapping[Flow, tuple[SubFlow, ...]], known: Links | None = None) -> Load:
    """The load that flows are, by the ways that they take."""
    found: dict[Hop, set[str]] = defaultdict(set)
    for flow, several in taken.items():
        for way in (way for sub_flow in several for way in sub_flow):
            for hop in way:
                found[hop].add(operation(topology, flow, way, hop))
    return Load(found, known, crowded(topology, taken) if len(taken) > 1 else {})


def _of_chipset(limit: Limit, whole: float) -> Attainable:
    """Anything from the collapse to what fewer senders reach is known of such machines."""
    source = f"{limit.name}: {limit.senders} senders and more together {as_gigabytes(limit.rate)} ({limit.source})"
    typical, high = min(1.0, limit.rate / whole), min(1.0, limit.otherwise / whole)
    return Attainable(low=0.9 * typical, typical=typical, high=high, source=source)


def told(several: tuple[SubFlow, ...], full: Hop) -> bool:
    """Whether enough is known of all ways to say that `full` holds them: a hop without a rate may be slower.

    A port is seldom faster than the slots around it. What crosses sockets over PCIe has shares of its own; of what does
    over NVLink-C2C, and of copies between memories, nothing is published.
    """
    free = {"pcie"} if full.links[0].kind in ("port", "loopback") else set()
    for way in (way for sub_flow in several for way in sub_flow):
        kinds = {hop.links[0].kind for hop in way}
        if any(hop.links[0].kind in _CARRY - free and able(hop) == _UNLIMITED for hop in way):
            return False
        if "interconnect" in kinds and not any(map(is_pcie, way)):
            return False
    return True


def counted(hop: Hop) -> float:
    """As `able`, and nothing of what joins sockets."""
    return _UNLIMITED if hop.links[0].kind == "interconnect" else able(hop)


def able(hop: Hop) -> float:
    """What the hop can carry; where nobody says what its ends can do, what it runs at; infinite where neither."""
    whole = rated(hop)
    if whole != _UNLIMITED:
        return whole
    trained = [link.trained for link in hop.links]
    return sum(rate for rate in trained if rate) if all(trained) else _UNLIMITED


def operation(topology: Topology, flow: Flow, way: Route, hop: Hop) -> str:
    """What an operation is to one hop, in the words of links.toml.

    "through" is a PCIe link between ports, on which no engine ends; "copy-far" crosses sockets; "staged" goes through
    host memory; disks read and write otherwise than NICs; memory at the end of a copy is read or written as by STREAM.
    """
    kind, below = hop.links[0].kind, topology.by_name[hop.links[0].b].kind
    if kind == "memory":
        return flow.op if len(flow.ends) == 1 else "triad"
    if flow.op in COLLECTIVES or flow.op in SOCKETS or flow.op == "copy-sm":
        return flow.op
    if kind in ("port", "loopback"):
        return "send" if flow.via == "net" or flow.op == EGRESS else "write"
    if flow.via == "host":
        return "staged"
    if is_pcie(hop) and below in FORWARDS:
        return "through"
    if is_pcie(hop) and below == "nvme":
        return f"disk-{flow.op}"
    if is_pcie(hop) and flow.op in _ACROSS and any(other.links[0].kind == "interconnect" for other in way):
        return "copy-far"
    return "write" if flow.op == EGRESS else flow.op


def is_pcie(hop: Hop) -> bool:
    """Also what a hypervisor shows as a device on a root bus, where the machine type says what the link is."""
    return hop.links[0].kind == "pcie" or hop.links[0].grade.startswith("pcie")


def towards(hop: Hop) -> str:
    """Whether a hop leads away from the processor or to it. Links of PCIe begin above, those of C2C at the GPU."""
    link = hop.links[0]
    if is_pcie(hop):
        return "device" if hop.sender == link.a else "host"
    if link.kind == "c2c":
        return "host" if hop.sender == link.a else "device"
    return ""
