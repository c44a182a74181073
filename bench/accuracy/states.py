"""Faults of PCIe, NVLink and network links and devices that a state shows."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from bench.accuracy.edits import (
    Edit,
    inactive,
    measured,
    names_of,
    remove_fields,
    set_fields,
    speed,
    together,
    width,
    without,
)
from bench.accuracy.faults import Fault, Kind, below, both_ways, drawn, is_guest
from bench.accuracy.healthy_nodes import HealthyNode
from bench.accuracy.measured import Loss
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Net, Node, Nvme, Pci, Port, Rdma
from linkgauge.models.facts.pci_classes import card_of, kind_of
from linkgauge.models.facts.pcie_rates import generation, speed_of
from linkgauge.models.graph.topology import Link
from linkgauge.models.inventory.gpu_links import gpu_links
from linkgauge.models.rules.gpu.missing import has_expected_count
from linkgauge.models.rules.network.port_roles import role_of
from linkgauge.models.rules.network.ports import cohort, real, up

_SMALLEST_COHORT = 2
_UPLINK, _DEVICES = ("upstream-port",), ("gpu", "nic", "nvme")
_CODES = {"nvme": "storage-link-slow"}


def _links(node: HealthyNode, kinds: tuple[str, ...]) -> list[Link]:
    """Full-width links to devices of these kinds whose two ends are both known."""
    functions, topology = node.snapshot.of(Pci), node.snapshot.topology
    found = []
    for address, link in topology.link_below.items():
        lower, upper = functions[address], functions[link.a]
        device = topology.find(address)
        known = link.rated and lower.width and lower.max_speed and upper.max_speed and upper.max_width
        whole = known and lower.width == min(lower.max_width or 0, upper.max_width or 0) > 1
        if device and device.kind in kinds and whole and not is_guest(node):
            found.append(link)
    return found


def narrow(kinds: tuple[str, ...]) -> Kind:
    """A link is trained at half its lanes or fewer."""

    def draw(node: HealthyNode, chance: Random) -> Fault | None:
        link = drawn(chance, _links(node, kinds))
        if link is None:
            return None
        now = node.snapshot.of(Pci)[link.b].width or 2
        lanes = chance.choice([lanes for lanes in (1, 2, 4, 8) if lanes < now])
        return _of_link(node, link, "narrow", width(node.snapshot, link.b, lanes), lanes / now)

    return draw


def slow(kinds: tuple[str, ...]) -> Kind:
    """A link runs one or two generations below the capability of both ends, under load."""

    def draw(node: HealthyNode, chance: Random) -> Fault | None:
        functions = node.snapshot.of(Pci)
        able = {
            link.id: min(functions[link.a].max_speed or 0, functions[link.b].max_speed or 0)
            for link in _links(node, kinds)
        }
        link = drawn(chance, [link for link in _links(node, kinds) if (generation(able[link.id]) or 0) > 2])
        if link is None:
            return None
        now = speed_of((generation(able[link.id]) or 3) - chance.choice([1, 2]))
        return _of_link(node, link, "slow", speed(node.snapshot, link.b, now, node.now), now / able[link.id])

    return draw


def _of_link(node: HealthyNode, link: Link, what: str, edit: Edit, left: float) -> Fault:
    device = node.snapshot.topology.find(link.b)
    code = _CODES.get(device.kind if device else "", f"pcie-link-{what}")
    card = [key for key in node.snapshot.of(Pci) if card_of(key) == card_of(link.b)]
    about = frozenset(name for key in card for name in names_of(node.snapshot, key)) | below(node, link.b)
    return Fault(code, frozenset({link.b}), about, edit, both_ways(link.a, link.b, left), 1 - left)


def nvlinks_down(node: HealthyNode, chance: Random) -> Fault | None:
    """One to four NVLinks of a GPU are inactive. Their ends at another GPU are inactive too."""
    snapshot = node.snapshot
    made = gpu_links(snapshot.facts)
    reported = snapshot.of(GpuLink)
    links = {
        key: made[key] for key in reported.keys() & made.keys() if made[key].kind == "nvlink" and reported[key].active
    }
    whole = {key for key, gpu in snapshot.of(Gpu).items() if not gpu.mig}  # GPUs with MIG use no NVLinks
    gpu = drawn(chance, sorted(whole & {key.partition("/")[0] for key in links}))
    if gpu is None:
        return None
    own = sorted(key for key in links if key.startswith(f"{gpu}/"))
    down = {links[key].id for key in chance.sample(own, chance.randint(1, min(4, len(own))))}
    ends = sorted(key for key, link in links.items() if link.id in down)
    gpus = sorted({key.partition("/")[0] for key in ends})
    edit = together(*(inactive(snapshot, one, [key for key in ends if key.startswith(f"{one}/")]) for one in gpus))
    about = frozenset(name for one in gpus for name in _names(node, one))
    return Fault("nvlink-inactive", about, about, edit, Loss(down=frozenset(down)), len(down) / len(own))


def _names(node: HealthyNode, gpu: str) -> list[str]:
    fact = node.snapshot.of(Gpu).get(gpu)
    return [gpu, *(names_of(node.snapshot, fact.address) if fact and fact.address else ())]


def gpu_gone(node: HealthyNode, chance: Random) -> Fault | None:
    """A GPU is no longer on the bus. Another source must give the expected number of GPUs."""
    facts = node.snapshot.of(Node).get("node")
    known = facts is not None and node.origin != "dumps" and has_expected_count(node.snapshot, facts)
    gpus = [key for key, function in node.snapshot.of(Pci).items() if kind_of(function) == "gpu"]
    address = drawn(chance, gpus) if known else None
    if address is None:
        return None
    names = frozenset(names_of(node.snapshot, address))
    return Fault("gpu-missing", frozenset({"node"}), names, without(names))


def device_lost(node: HealthyNode, chance: Random) -> Fault | None:
    """A GPU, NIC or disk with one function is in the list but does not answer."""
    codes = {"gpu": "gpu-missing", "nic": "nic-missing", "nvme": "storage-degraded"}
    cards = [card_of(key) for key in node.snapshot.of(Pci)]
    link = drawn(chance, [link for link in _links(node, _DEVICES) if cards.count(card_of(link.b)) == 1])
    device = node.snapshot.topology.find(link.b) if link else None
    if link is None or device is None:
        return None
    about = frozenset(names_of(node.snapshot, link.b))
    gpus = [gpu.key for gpu in node.snapshot.of(Gpu).values() if gpu.address == link.b]
    edit = together(remove_fields(Pci, link.b, "width", "speed"), set_fields(Pci, link.b, lost=True), without(gpus))
    edits = [set_fields(Gpu, key, address=link.b, failure="GPU is lost") for key in gpus]
    down = [set_fields(Port, key, state="DOWN", physical_state="Disabled") for key in _ports_of(node, link.b)]
    return Fault(codes[device.kind], frozenset({link.b}), about, together(edit, *edits, *down))


def _ports_of(node: HealthyNode, address: str) -> list[str]:
    names = names_of(node.snapshot, address)
    return [key for key, port in node.snapshot.of(Port).items() if port.device in names]


def bus_errors(node: HealthyNode, chance: Random) -> Fault | None:
    """A link has uncorrectable errors since boot."""
    counted_on = [link for link in _links(node, (*_UPLINK, *_DEVICES)) if link.b in node.snapshot.observed]
    link = drawn(chance, counted_on if node.origin != "dumps" else [])
    if link is None:
        return None
    edit = measured(link.b, chance.choice(["aer_nonfatal", "aer_fatal"]), chance.randint(1, 5), node.now)
    return Fault("pcie-errors", frozenset({link.b}), frozenset(names_of(node.snapshot, link.b)), edit)


def port_down(node: HealthyNode, chance: Random) -> Fault | None:
    """A fabric port has lost its cable."""
    key = drawn(chance, _fabric(node))
    if key is None:
        return None
    nets = [set_fields(Net, net, carrier=False) for net in _net(node, key)]
    edit = together(set_fields(Port, key, state="DOWN", physical_state="Polling"), *nets)
    return Fault("nic-port-down", frozenset({key}), _port_names(node, key), edit)


def port_slow(node: HealthyNode, chance: Random) -> Fault | None:
    """A fabric port runs at half or a quarter of its rate."""
    key = drawn(chance, [key for key in _fabric(node) if node.snapshot.of(Port)[key].rate])
    if key is None:
        return None
    left = chance.choice([0.25, 0.5])
    rate = node.snapshot.of(Port)[key].rate or 0.0
    nets = [(net, node.snapshot.of(Net)[net].speed) for net in _net(node, key)]
    edits = [set_fields(Net, net, speed=speed * left) for net, speed in nets if speed]
    edit = together(set_fields(Port, key, rate=rate * left), *edits)
    return Fault("nic-rate-low", frozenset({key}), _port_names(node, key), edit, size=1 - left)


def _fabric(node: HealthyNode) -> list[str]:
    """Active RDMA ports of a known role, most of whose equals are active too."""
    snapshot = node.snapshot
    ports = [port for port in snapshot.of(Port).values() if real(snapshot, port) and up(port)]
    return [
        port.key for port in ports if role_of(snapshot, port) and len(cohort(snapshot, port)) > _SMALLEST_COHORT + 1
    ]


def _net(node: HealthyNode, port: str) -> list[str]:
    net = node.snapshot.of(Port)[port].netdev
    return [net] if net and net in node.snapshot.of(Net) else []


def _port_names(node: HealthyNode, port: str) -> frozenset[str]:
    device = node.snapshot.of(Port)[port].device or port
    adapter = node.snapshot.of(Rdma).get(device)
    return frozenset(
        {port, device, *_net(node, port), *(names_of(node.snapshot, adapter.address or "") if adapter else ())}
    )


def nvme_dead(node: HealthyNode, chance: Random) -> Fault | None:
    """The driver has removed a disk after a failure."""
    key = drawn(chance, [key for key, disk in node.snapshot.of(Nvme).items() if disk.state == "live"])
    if key is None:
        return None
    address = node.snapshot.of(Nvme)[key].address or key
    names = frozenset(names_of(node.snapshot, address))
    return Fault("storage-degraded", frozenset({key}), names, set_fields(Nvme, key, state="dead"))


KINDS: Mapping[str, Kind] = {
    "a device's link is narrow": narrow(_DEVICES),
    "a device's link is slow": slow(_DEVICES),
    "a switch's uplink is narrow": narrow(_UPLINK),
    "a switch's uplink is slow": slow(_UPLINK),
    "NVLinks are inactive": nvlinks_down,
    "a GPU is gone": gpu_gone,
    "a device answers no more": device_lost,
    "uncorrected errors of a link": bus_errors,
    "a port is down": port_down,
    "a port is slow": port_slow,
    "a disk is dead": nvme_dead,
}
