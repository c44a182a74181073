"""Snapshots from topology files, and the parts of a node that such a file can describe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Pci, Port
from linkgauge.models.facts.pci_classes import card_of, kind_of
from linkgauge.models.facts.pcie_rates import generation
from linkgauge.models.graph.path_types import paths
from linkgauge.models.graph.routes import route
from linkgauge.models.graph.topology import FABRIC
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import nccl_topo


def snapshot_of(text: str) -> Snapshot:
    """The node that a topology file describes."""
    return assemble(nccl_topo.read(Part("topo.xml", 1, text, 1000.0)), Site(), 1000.0, origin="dumps")


@dataclass(frozen=True)
class Seen:
    """The content of a topology file about a node. Nodes with equal values have equal files."""

    numa: Mapping[str, int | None]  # of each GPU and NIC
    uplinks: Mapping[str, tuple[str, ...]]  # grades of the known PCIe links from each device to its processor
    paths: Mapping[tuple[str, str], str]  # in NCCL's terms
    links: Mapping[tuple[str, str, str], int]  # active links by kind and both ends; all NVSwitches are one end
    ports: Mapping[str, float | None]  # of RDMA devices, in bytes per second


def seen(snapshot: Snapshot) -> Seen:
    topology, functions = snapshot.topology, snapshot.of(Pci)
    ends = sorted(a for a, f in functions.items() if kind_of(f) in ("gpu", "nic") and not f.physfn)
    homes = {link.b: link.a for link in topology.links if link.a.startswith("numa")}
    numa, uplinks = dict[str, int | None](), dict[str, tuple[str, ...]]()
    for end in ends:
        root = end
        while root in functions:
            root = functions[root].parent or ""
        home = topology.find(homes.get(root, ""))
        numa[end] = home.numa_node if home else None
        hops = route(topology, end, root, via="pcie") or ()
        grades = [link.grade for hop in hops for link in hop.links if link.kind == "pcie" and link.grade]
        own = topology.link_below.get(end)
        uplinks[end] = tuple(grades) if own and own.grade else (*_as_its_driver_says(snapshot, end), *grades)
    return Seen(
        numa,
        uplinks,
        path_types(snapshot, ends),
        Counter(_links(snapshot)),
        {key: port.rate if port.state in (None, "ACTIVE") else None for key, port in snapshot.of(Port).items()},
    )


def _as_its_driver_says(snapshot: Snapshot, address: str) -> list[str]:
    """If a hypervisor hides a GPU's link, the driver still knows it."""
    gpus = [gpu for gpu in snapshot.of(Gpu).values() if gpu.address == address and gpu.pcie_max_speed]
    return [f"pcie{generation(gpu.pcie_max_speed or 0)}x{gpu.pcie_max_width}" for gpu in gpus]


def _links(snapshot: Snapshot) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for link in snapshot.topology.links:
        if link.kind in ("nvlink", "xgmi", "c2c") and link.trained != 0:
            other = snapshot.topology.find(link.b)
            switched = other is not None and other.kind == "nvswitch"
            one, other_end = sorted((link.a, FABRIC if switched else link.b))
            found.append((link.kind, one, other_end))
    return found


def path_types(snapshot: Snapshot, ends: list[str]) -> dict[tuple[str, str], str]:
    """The path types between all ends in NCCL's terms. NCCL knows NUMA nodes but no host bridges, so NODE does not
    occur.

    Functions of one card are left out, because NCCL treats them as separate cards.
    """
    reached = {end: paths(snapshot.topology, end, ends) for end in ends}
    pairs = ((a, b) for a in ends for b in ends if card_of(a) != card_of(b))
    return {(a, b): in_nccls_words(reached[a][b].type) for a, b in pairs if b in reached[a]}


def in_nccls_words(path: str) -> str:
    return "NVL" if re.fullmatch(r"NV\d+|XGMI", path) else {"NODE": "PHB"}.get(path, path)
