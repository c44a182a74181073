"""States of healthy machines that look like faults (../shared/facts/link-facts.md, sections b, h and i).

Each function returns the edit of a healthy node's records, or None if the node has no place for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

from bench.accuracy.edits import Edit, measured, remove_fields, set_fields, together
from bench.accuracy.faults import is_guest
from bench.accuracy.healthy_nodes import HealthyNode
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Numa, Pci, Port, Setting
from linkgauge.models.facts.pci_classes import kind_of
from linkgauge.models.inventory.pci_tree import functions_above

Oddity: TypeAlias = Callable[[HealthyNode, Random], "Edit | None"]


def idle(node: HealthyNode, chance: Random) -> Edit | None:
    """GPUs, their ports and the switches above lower their speed at rest. The width stays."""
    functions, links = node.snapshot.of(Pci), node.snapshot.topology.link_below
    gpus = [address for address, function in functions.items() if kind_of(function) == "gpu"]
    above = {port for address in gpus for port in functions_above(address, functions)}
    resting = [address for address in links if address in above or address in gpus]
    ends = [end for address in resting for end in (address, links[address].a)]
    slowed = [set_fields(Pci, end, speed=2.5e9) for end in ends if functions[end].speed]
    shown = [set_fields(Gpu, gpu.key, pcie_speed=2.5e9) for gpu in node.snapshot.of(Gpu).values() if gpu.pcie_speed]
    return together(*slowed, *shown) if slowed or shown else None


def made_up_bridges(node: HealthyNode, chance: Random) -> Edit | None:
    """Bridges that a hypervisor invents (1000:0001, "53c810"): 2.5 GT/s x1, above devices with full speed."""
    above = [link.a for link in node.snapshot.topology.link_below.values()]
    if not is_guest(node) or node.snapshot.machine is None or not above:
        return None
    fields = {"vendor": 0x1000, "device": 0x0001, "max_speed": 2.5e9, "max_width": 1, "speed": 2.5e9, "width": 1}
    return together(*(set_fields(Pci, port, **fields) for port in dict.fromkeys(above)))


def odd_switch_ports(node: HealthyNode, chance: Random) -> Edit | None:
    """Upstream ports with a highest speed of 5 GT/s, as on OCI's H100 machines (NCCL reads max_link_speed)."""
    ports = [one.id for one in node.snapshot.topology.devices if one.kind == "upstream-port"]
    edits = [set_fields(Pci, port, max_speed=5e9) for port in ports if node.snapshot.of(Pci)[port].max_speed]
    return together(*edits) if edits else None


def memory_only_nodes(node: HealthyNode, chance: Random) -> Edit | None:
    """NUMA nodes without processors: those of GPUs, or spare ones that also have no memory, as on Grace machines."""
    first = len(node.snapshot.of(Numa))
    if not first:
        return None
    sizes = [chance.choice([0, 0, 96 << 30]) for _ in range(chance.choice([8, 32]))]
    return together(*(set_fields(Numa, f"numa{first + n}", cpus=(), memory=size) for n, size in enumerate(sizes)))


def powersave(node: HealthyNode, chance: Random) -> Edit | None:
    """The governor of intel_pstate and amd_pstate with the name "powersave", which does not limit the clock."""
    if "scaling_governor" not in node.snapshot.of(Setting) and node.origin != "dumps":
        return None
    values = {
        "scaling_driver": chance.choice(["intel_pstate", "amd-pstate-epp"]),
        "scaling_governor": "powersave",
        "energy_preference": chance.choice(["performance", "balance_performance"]),
    }
    return together(*(set_fields(Setting, key, value=value) for key, value in values.items()))


def no_width(node: HealthyNode, chance: Random) -> Edit | None:
    """A port or virtual function whose link reads Unknown at width 63 or 255: the read failed."""
    functions = node.snapshot.of(Pci)
    empty = {f.key for f in functions.values() if kind_of(f) == "bridge"} - {f.parent for f in functions.values()}
    others = [key for key in functions if key in empty or functions[key].physfn]
    if not others:
        return None
    some = chance.sample(others, min(len(others), 3))
    return together(
        *(edit for key in some for edit in (remove_fields(Pci, key, "width", "speed"), set_fields(Pci, key, lost=True)))
    )


def lifetime_counts(node: HealthyNode, chance: Random) -> Edit | None:
    """Corrected or repaired errors of the past, and a power cap under load."""
    gpus = [gpu for gpu in node.snapshot.of(Gpu).values() if gpu.ecc_corrected_lifetime is not None or gpu.ecc]
    fields = {"ecc_corrected_lifetime": 40, "ecc_uncorrected_lifetime": 2, "remapped_uncorrectable": 1}
    edits = [set_fields(Gpu, gpu.key, **fields, clock_reasons=("software power cap",)) for gpu in gpus]
    return together(*edits) if edits else None


def busy_network(node: HealthyNode, chance: Random) -> Edit | None:
    """Ports that wait to send, as in any busy network."""
    waits = [one for one in node.snapshot.observations if one.quantity == "port_xmit_wait"]
    edits = [measured(str(one.about), one.quantity, 1e9, one.at) for one in waits]
    return together(*edits) if edits else None


def spare_ports(node: HealthyNode, chance: Random) -> Edit | None:
    """A spare port without a cable that the site does not require."""
    spare = [port for port in node.snapshot.of(Port).values() if port.link_layer == "Ethernet" and port.state == "DOWN"]
    return together(*(set_fields(Port, port.key, physical_state="Disabled") for port in spare)) if spare else None


ODDITIES: Mapping[str, Oddity] = {
    "links at rest": idle,
    "bridges that a hypervisor made up": made_up_bridges,
    "switch ports at 5 GT/s": odd_switch_ports,
    "NUMA nodes of memory alone, or of nothing": memory_only_nodes,
    "a governor called powersave": powersave,
    "width 63 or 255": no_width,
    "lifetime counts and a power cap": lifetime_counts,
    "a busy network": busy_network,
    "spare ports": spare_ports,
}


def odd(node: HealthyNode, chance: Random) -> tuple[tuple[str, ...], Edit]:
    """All oddities that fit the node, each with a probability of 2/3: their names, and the edit."""
    drawn = {name: oddity(node, chance) for name, oddity in ODDITIES.items() if chance.random() < 2 / 3}
    found = {name: edit for name, edit in drawn.items() if edit}
    return tuple(found), together(*found.values())
