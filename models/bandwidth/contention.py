"""The load on each hop of a node at one time, and the share of its rate that each hop reaches under this load.

Some chipsets fall far below the fair share when several GPUs write to several others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct, field

from ..catalog.chipsets import Limit, limits
from ..catalog.links import Links
from ..facts.records import COLLECTIVES, EGRESS, SOCKETS, Flow
from ..facts.units import as_gigabytes
from ..graph.flow_paths import SubFlow
from ..graph.routes import RateOf, Route, rated
from ..graph.topology import FORWARDS, Hop, Topology
from .efficiency import Attainable, attainable

_UNLIMITED = float("inf")
_CARRY = frozenset({"pcie", "port", "loopback", "nvlink", "xgmi", "c2c"})  # kinds that have a rate, read or not
_ACROSS = frozenset({"copy", "write", "read", "send", EGRESS})  # operations that are slower between sockets


class Load(Struct, frozen=True, dict=True):
    """The operations on each hop. `known` replaces the catalog's measurements of links."""

    op: Mapping[Hop, Collection[str]] = field(default_factory=dict)
    known: Links | None = None
    contended: Mapping[Hop, Limit] = field(default_factory=dict)  # limited by the chipset rather than by the link

    def reach(self, hop: Hop) -> Attainable | None:
        """The shares of the hop's rate that this load can reach; None: nothing is published.

        With several operations on one hop, the slowest sets the share: no rate of a mixture is published.
        """
        if hop in self.contended:
            return _of_chipset(self.contended[hop], able(hop))
        back = Hop(hop.receiver, hop.sender, hop.links)
        duplex = back in self.op and hop.sender != hop.receiver
        link, where = hop.links[0], towards(hop)
        each = [attainable(link.grade, op, where, duplex, self.known, link.rated) for op in self.op.get(hop, ("copy",))]
        return min((one for one in each if one), key=lambda one: one.typical, default=None)

    def rates(self, bound: str) -> RateOf:
        """Rates at "low", "typical" or "high".

        A hop without a published share carries its rated rate. Links between sockets do not limit here: the catalog has
        the smallest rate of all boards, and copies across them have their own shares ("copy-far").
        """

        def rate(hop: Hop) -> float:
            reach = self.reach(hop)
            return rate_without_sockets(hop) * float(getattr(reach, bound)) if reach else rate_without_sockets(hop)

        return rate


def load_of(topology: Topology, routed: Mapping[Flow, tuple[SubFlow, ...]], known: Links | None = None) -> Load:
    """The load of these flows on the hops of their paths."""
    found: dict[Hop, set[str]] = defaultdict(set)
    for flow, several in routed.items():
        for path in (path for sub_flow in several for path in sub_flow):
            for hop in path:
                found[hop].add(operation(topology, flow, path, hop))
    return Load(found, known, contended(topology, routed) if len(routed) > 1 else {})


def _of_chipset(limit: Limit, whole: float) -> Attainable:
    """The range of such machines: from the collapsed rate to the rate with fewer senders."""
    source = f"{limit.name}: {limit.senders} senders and more together {as_gigabytes(limit.rate)} ({limit.source})"
    typical, high = min(1.0, limit.rate / whole), min(1.0, limit.otherwise / whole)
    return Attainable(low=0.9 * typical, typical=typical, high=high, source=source)


def enough_known(several: tuple[SubFlow, ...], bottleneck: Hop) -> bool:
    """Whether enough rates are known to conclude that `bottleneck` limits the paths. A hop without a rate may be
    slower.

    If a port is the bottleneck, unknown PCIe rates are accepted: a port is rarely faster than its slot. Copies across
    sockets over PCIe have their own shares. No share is published for NVLink-C2C across sockets, or for copies between
    memories.
    """
    free = {"pcie"} if bottleneck.links[0].kind in ("port", "loopback") else set()
    for path in (path for sub_flow in several for path in sub_flow):
        kinds = {hop.links[0].kind for hop in path}
        if any(hop.links[0].kind in _CARRY - free and able(hop) == _UNLIMITED for hop in path):
            return False
        if "interconnect" in kinds and not any(map(is_pcie, path)):
            return False
    return True


def rate_without_sockets(hop: Hop) -> float:
    """As `able`, but infinite for links between sockets."""
    return _UNLIMITED if hop.links[0].kind == "interconnect" else able(hop)


def able(hop: Hop) -> float:
    """The rated rate of the hop; else its trained rate; infinite if neither is known."""
    whole = rated(hop)
    if whole != _UNLIMITED:
        return whole
    trained = [link.trained for link in hop.links]
    return sum(rate for rate in trained if rate) if all(trained) else _UNLIMITED


def operation(topology: Topology, flow: Flow, path: Route, hop: Hop) -> str:
    """The operation on one hop, in the words of links.toml.

    "through": a PCIe link between ports, without an engine at its end. "copy-far": a copy across sockets. "staged": a
    copy through host memory. Disks have operations of their own. Memory at the end of a copy counts as STREAM's triad.
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
    if is_pcie(hop) and flow.op in _ACROSS and any(other.links[0].kind == "interconnect" for other in path):
        return "copy-far"
    return "write" if flow.op == EGRESS else flow.op


def is_pcie(hop: Hop) -> bool:
    """Whether the hop is PCIe. In a virtual machine also a device on a root bus, if the machine type names its PCIe
    grade.
    """
    return hop.links[0].kind == "pcie" or hop.links[0].grade.startswith("pcie")


def towards(hop: Hop) -> str:
    """Direction of a hop: towards the "device" or the "host". PCIe links start at the processor's end, C2C links at the
    GPU.
    """
    link = hop.links[0]
    if is_pcie(hop):
        return "device" if hop.sender == link.a else "host"
    if link.kind == "c2c":
        return "host" if hop.sender == link.a else "device"
    return ""


def contended(topology: Topology, routed: Mapping[Flow, tuple[SubFlow, ...]]) -> Mapping[Hop, Limit]:
    """The uplinks of switches that a known chipset limit holds under these flows. Switch names are those of pci.ids."""
    over = defaultdict[Hop, list[tuple[str, str]]](list)
    for uplink, sender, root in _writes(topology, routed):
        over[uplink].append((sender, root))
    found: dict[Hop, Limit] = {}
    cpus = [device.name for device in topology.devices if device.kind == "package"] if over else []
    for uplink, pairs in over.items():
        senders, roots = (len(set(names)) for names in zip(*pairs, strict=True))
        name = topology.by_name[uplink.sender].name
        for limit in limits():
            many = senders >= limit.senders and roots >= limit.receivers
            if many and fnmatchcase(name, limit.switch) and any(fnmatchcase(cpu, limit.cpu) for cpu in cpus):
                found[uplink] = limit
    return found


def _writes(topology: Topology, routed: Mapping[Flow, tuple[SubFlow, ...]]) -> Iterator[tuple[Hop, str, str]]:
    """For each copy between GPUs through a processor: the sender's uplink, the sender, the receiver's root port."""
    for flow, several in routed.items():
        ends = [topology.find(end) for end in flow.ends]
        if len(ends) == 2 and all(end and end.kind == "gpu" for end in ends):
            for path in (path for sub_flow in several for path in sub_flow):
                up = _last(topology, path, "upstream-port", "root-port")
                down = _last(topology, path, "root-port", "upstream-port")
                if up and down:
                    yield up, flow.ends[0], down.sender


def _last(topology: Topology, path: Route, sender: str, receiver: str) -> Hop | None:
    kinds = {hop: (topology.by_name[hop.sender].kind, topology.by_name[hop.receiver].kind) for hop in path}
    return next((hop for hop in reversed(path) if kinds[hop] == (sender, receiver)), None)
