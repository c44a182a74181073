"""Each fault of each link and device of a node, alone, and the same fault of all equal devices at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from bench.accuracy.edits import (
    Edit,
    inactive,
    lowered,
    measured,
    names_of,
    set_fields,
    speed,
    together,
    width,
    without,
)
from bench.accuracy.faults import Case, Cases, below
from bench.accuracy.healthy_nodes import HealthyNode
from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink
from linkgauge.models.facts.machine import Net, Numa, Package, Pci, Port
from linkgauge.models.facts.pci_classes import card_of, kind_of
from linkgauge.models.facts.pcie_rates import generation, speed_of
from linkgauge.models.facts.records import Fact
from linkgauge.models.graph.topology import Link
from linkgauge.models.inventory.cohorts import carried
from linkgauge.models.inventory.gpu_links import gpu_links
from linkgauge.models.inventory.pci_tree import functions_above
from linkgauge.models.rules.host.counts import CONTROLLERS, DISKS, GPUS, NICS, NVSWITCHES, OTHER_NICS
from linkgauge.models.rules.network.port_roles import role_of
from linkgauge.models.rules.network.ports import real, up

_WIDTH = frozenset({"pcie-link-narrow", "pcie-path-bottleneck", "storage-link-slow"})
_SPEED = frozenset({"pcie-link-slow", "pcie-path-bottleneck", "storage-link-slow"})
_NVLINK = frozenset({"nvlink-slow", "nvlink-inactive", "nvlink-fabric-incomplete", "p2p-disabled"})
_MISSING = frozenset({"gpu-missing", "nic-missing", "storage-missing", "storage-degraded", "nvswitch-error"})
_ABSENT = _MISSING | {"nvlink-fabric-incomplete", "nvlink-inactive"}
# The counts in coverage that a removal lowers.
_COUNTS: Mapping[str, frozenset[str]] = {
    "gpu": frozenset({GPUS}),
    "nic": frozenset({NICS, OTHER_NICS}),
    "nvme": frozenset({DISKS}),
    "storage": frozenset({CONTROLLERS}),
    "nvswitch": frozenset({NVSWITCHES}),
}
_ENDPOINTS = ("gpu", "nic", "nvme", "nvswitch", "storage")
_AT_REST = ("nic", "nvme", "storage", "nvswitch")  # their links do not lower the speed at rest
_SLOWEST = 2.5e9


def _links(node: HealthyNode) -> Iterator[tuple[Link, str]]:
    """The PCIe links with job traffic, each with the kind of the device below it."""
    functions = node.snapshot.of(Pci)
    for address, link in node.snapshot.topology.link_below.items():
        kind = "switch" if carried(node.snapshot).get(address) else kind_of(functions[address])
        if kind in (*_ENDPOINTS, "switch") and not functions[address].physfn and not functions[address].lost:
            yield link, kind


def link_cases(node: HealthyNode) -> Cases:
    """Width, speed and capability of each link: trained lower, and lower capability of either end or both."""
    functions = node.snapshot.of(Pci)
    for link, kind in _links(node):
        lower, upper = functions[link.b], functions[link.a]
        names = frozenset({link.a, *_card_names(node, link.b)})
        lanes = lower.width or upper.width
        if lanes and lanes > 1:
            half = width(node.snapshot, link.b, lanes // 2)
            some = [("trained", half)] + [
                (end, together(half, _able(node, link, end, max_width=lanes // 2)))
                for end in _ends(node, link, "width")
            ]
            for how, edit in some:
                yield Case(f"PCIe width of a {kind}: {how}", link.b, edit, _WIDTH, names, ("width",))
        able = min(filter(None, (lower.max_speed, upper.max_speed)), default=None)
        if able and able > _SLOWEST and (generation(able) or 0) > 1:
            yield from _speed_cases(node, link, kind, speed_of((generation(able) or 2) - 1), names)


def _speed_cases(node: HealthyNode, link: Link, kind: str, transfers: float, names: frozenset[str]) -> Cases:
    slow = _trained(node, link, transfers)
    some = [("trained, busy", speed(node.snapshot, link.b, transfers, node.now))] if node.origin != "dumps" else []
    now = node.snapshot.of(Pci)[link.b].speed
    if kind in _AT_REST and now and now > transfers:
        some.append(("trained", slow))
    some += [(end, together(slow, _able(node, link, end, max_speed=transfers))) for end in _ends(node, link, "speed")]
    for how, edit in some:
        yield Case(f"PCIe speed of a {kind}: {how}", link.b, edit, _SPEED, names, ("speed",))


def _ends(node: HealthyNode, link: Link, what: str) -> Sequence[str]:
    functions = node.snapshot.of(Pci)
    known = [end for end, key in (("device", link.b), ("port", link.a)) if getattr(functions[key], f"max_{what}")]
    return [*known, "both"] if len(known) == 2 else known


def _trained(node: HealthyNode, link: Link, transfers: float) -> Edit:
    """The present speed of both ends is at most this."""
    functions = node.snapshot.of(Pci)
    ends = [edit for end in (link.a, link.b) for edit in _at_most(Pci, functions[end], speed=transfers)]
    gpus = [edit for gpu in _gpus_at(node, link.b) for edit in _at_most(Gpu, gpu, pcie_speed=transfers)]
    seen = [one for one in node.snapshot.observed.get(link.b, ()) if one.quantity == "link_speed"]
    rates = [measured(link.b, one.quantity, min(one.value, transfers), one.at, one.unit, one.busy) for one in seen]
    return together(*ends, *gpus, *rates)


def _at_most(kind: type[Fact], fact: Fact, **limits: float) -> list[Edit]:
    return lowered(kind, fact, **{name: min(getattr(fact, name) or most, most) for name, most in limits.items()})


def _able(node: HealthyNode, link: Link, end: str, **limits: float) -> Edit:
    """The capability of one end or both. The driver of a GPU states the lower of both."""
    functions = node.snapshot.of(Pci)
    card = [key for key in functions if card_of(key) == card_of(link.b)]
    keys = {"device": card, "port": [link.a], "both": [*card, link.a]}[end]
    edits = [edit for key in keys for edit in _at_most(Pci, functions[key], **limits)]
    for gpu in _gpus_at(node, link.b):
        edits += _at_most(Gpu, gpu, **{f"pcie_{name}": most for name, most in limits.items()})
        if end != "port" and "max_speed" in limits:
            edits += _at_most(Gpu, gpu, pcie_own_max_speed=limits["max_speed"])
    return together(*edits)


def _gpus_at(node: HealthyNode, address: str) -> list[Gpu]:
    return [gpu for gpu in node.snapshot.of(Gpu).values() if gpu.address == address]


def _card_names(node: HealthyNode, address: str) -> frozenset[str]:
    card = [key for key in node.snapshot.of(Pci) if card_of(key) == card_of(address)]
    return frozenset(name for key in card for name in names_of(node.snapshot, key))


def removal_cases(node: HealthyNode) -> Cases:
    """Each GPU, NIC, disk, storage controller and NVSwitch is gone, or each switch with all below it."""
    functions = node.snapshot.of(Pci)
    places = frozenset({"node", *node.snapshot.of(Numa), *node.snapshot.of(Package)})
    cards: dict[str, str] = {}
    for address, function in functions.items():
        if kind_of(function) in _ENDPOINTS and not function.physfn:
            cards.setdefault(card_of(address), address)
    for address in cards.values():
        kind, names = kind_of(functions[address]), _card_names(node, address)
        subjects = names | places | _around(node, address, names) | _COUNTS.get(kind, frozenset())
        yield Case(
            f"removal of a {kind}",
            address,
            _gone(node, names),
            _ABSENT,
            subjects,
            ("count",),
            about=names | _to(node, names),
        )
    for address in carried(node.snapshot):
        if address in node.snapshot.topology.link_below:
            names = below(node, address) | _card_names(node, address)  # a switch can have further functions
            subjects = names | places | _around(node, address, names)
            subjects = subjects.union(*(_COUNTS.get(kind, ()) for kind in carried(node.snapshot)[address]))
            edit, words = _gone(node, names), ("count",)
            yield Case(
                "removal of a PCIe switch", address, edit, _ABSENT, subjects, words, about=names | _to(node, names)
            )


def _to(node: HealthyNode, names: frozenset[str]) -> frozenset[str]:
    """The links of GPUs to these devices."""
    return frozenset(link.key for link in node.snapshot.of(GpuLink).values() if link.remote in names)


def _around(node: HealthyNode, address: str, names: frozenset[str]) -> frozenset[str]:
    """The ports above a device, and the GPUs with NVLinks to what is removed with it."""
    peers = {link.gpu or "" for link in node.snapshot.of(GpuLink).values() if link.remote in names}
    return _gpu_names(node, peers) | frozenset(functions_above(address, node.snapshot.of(Pci)))


def _gone(node: HealthyNode, names: Iterable[str]) -> Edit:
    """Nothing is known of these devices, NVLinks to them are inactive, and the driver counts fewer GPUs."""
    gone, snapshot = frozenset(names), node.snapshot
    edits = [without(gone)]
    ends: dict[str, list[str]] = defaultdict(list)
    for link in snapshot.of(GpuLink).values():
        gpu = link.gpu or link.key.partition("/")[0]
        if link.remote in gone and link.active and gpu not in gone:
            ends[gpu].append(link.key)
    edits += [inactive(snapshot, gpu, links) for gpu, links in ends.items()]
    fewer = len(gone & snapshot.of(Gpu).keys())
    edits += [e for d in snapshot.of(Driver).values() for e in lowered(Driver, d, gpus=(d.gpus or fewer) - fewer)]
    return together(*edits)


def port_cases(node: HealthyNode) -> Cases:
    """Each port that is up: down, at half rate, with a small MTU."""
    snapshot = node.snapshot
    for port in snapshot.of(Port).values():
        nets = [net for net in snapshot.of(Net).values() if net.key == port.netdev]
        names = frozenset({port.key, port.device or port.key, *(net.key for net in nets)})
        if real(snapshot, port) and up(port):
            yield from _port_cases(node, Port, port, nets, names)
    for net in snapshot.of(Net).values():
        if net.address and real(snapshot, net) and up(net):
            yield from _port_cases(node, Net, net, [net], frozenset({net.key, net.address}))


def _port_cases(
    node: HealthyNode, kind: type[Fact], port: Port | Net, nets: Sequence[Net], names: frozenset[str]
) -> Cases:
    what = "RDMA port" if kind is Port else "network port"
    down = [set_fields(Net, net.key, carrier=False) for net in nets]
    down += [set_fields(Port, port.key, state="DOWN", physical_state="Polling")] if kind is Port else []
    codes = frozenset({"nic-port-down"})
    yield Case(f"{what} down", port.key, together(*down), codes, names, ("port", "state", "carrier"))
    slow = [e for net in nets for e in lowered(Net, net, speed=(net.speed or 0) / 2)]
    slow += lowered(Port, port, rate=(port.rate or 0) / 2) if isinstance(port, Port) else []
    if slow:
        yield Case(
            f"{what} at half rate", port.key, together(*slow), frozenset({"nic-rate-low"}), names, ("rate", "speed")
        )
    small = [e for net in nets if (net.mtu or 0) > 4000 for e in lowered(Net, net, mtu=1500)]
    role = role_of(node.snapshot, port)
    if small and role and role.severity == "critical":  # other networks often use this MTU
        yield Case(f"{what} with MTU 1500", port.key, together(*small), frozenset({"nic-mtu"}), names, ("mtu",))


def nvlink_cases(node: HealthyNode) -> Cases:
    """Each NVLink down, all links of each GPU, all links of each pair, and each link at half speed."""
    made, reported = gpu_links(node.snapshot.facts), node.snapshot.of(GpuLink)
    whole = {key for key, gpu in node.snapshot.of(Gpu).items() if not gpu.mig}  # GPUs with MIG use no NVLinks
    both = [key for key in made.keys() & reported.keys() if key.partition("/")[0] in whole]
    alive = {key: made[key] for key in both if reported[key].active}
    of_gpu: dict[str, set[str]] = defaultdict(set)
    of_pair: dict[str, set[str]] = defaultdict(set)
    for key in sorted(alive):
        gpu, kind = key.partition("/")[0], alive[key].kind
        of_gpu[gpu].add(key)
        ends = {one.partition("/")[0] for one in alive if alive[one].id == alive[key].id}
        if len(ends) > 1:
            of_pair["-".join(sorted(ends))].add(key)
        yield _down(node, f"one {kind} link down", key, {key}, alive)
        if half := lowered(GpuLink, reported[key], speed=(reported[key].speed or 0) / 2):
            names = _gpu_names(node, [gpu]) | {key}
            yield Case(f"one {kind} link at half speed", key, half[0], _NVLINK, names, ("speed", "rate"))
    for gpu, keys in of_gpu.items():
        yield _down(node, "all links of a GPU down", gpu, keys, alive)
    for pair, keys in of_pair.items():
        yield _down(node, "all links of a pair down", pair, keys, alive)


def _down(node: HealthyNode, kind: str, place: str, keys: Iterable[str], alive: Mapping[str, Link]) -> Case:
    ids = {alive[key].id for key in keys}
    ends = [key for key in alive if alive[key].id in ids]
    gpus = sorted({key.partition("/")[0] for key in ends})
    edit = together(*(inactive(node.snapshot, gpu, [k for k in ends if k.startswith(f"{gpu}/")]) for gpu in gpus))
    subjects = _gpu_names(node, gpus) | set(ends) | {place}
    return Case(kind, place, edit, _NVLINK, subjects, ("nvlink", "link"))


def _gpu_names(node: HealthyNode, gpus: Iterable[str]) -> frozenset[str]:
    facts = [(key, node.snapshot.of(Gpu).get(key)) for key in gpus]
    return frozenset(
        name
        for key, fact in facts
        for name in (key, *(names_of(node.snapshot, fact.address) if fact and fact.address else ()))
    )


SOURCES: Sequence[Callable[[HealthyNode], Cases]] = (link_cases, removal_cases, port_cases, nvlink_cases)
