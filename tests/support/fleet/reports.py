"""Generated reports of a fleet of 8-GPU nodes: published noise, and one node in a hundred is broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from random import Random

from msgspec.structs import replace

from linkgauge.exporters.formats.json import as_json
from linkgauge.models.graph.topology import Link
from linkgauge.models.report import Report
from tests.support.nodes.described import node
from tests.support.nodes.measured_nodes import HEALTHY, NODE, measured

NOISE = 0.005  # of copies between nodes: links of one kind agree within 0.2 to 2 % (docs/reference/accuracy.md)
NOISE_MEMORY = 0.02
BROKEN = 100  # one node of so many
OWN = ("[device.gpu1]\nwidth = 8\n", "[device.mlx5_4]\nup = false\n", "[device.gpu3]\ninactive = [7]\n")

Break = Callable[[Report, Random], Report]


@cache
def healthy() -> Report:
    """The report of a measured node without faults."""
    return measured(node(NODE, HEALTHY))


def reports(count: int, seed: int = 1) -> Iterator[tuple[Report, bool]]:
    """So many reports, and whether the node is broken."""
    random = Random(seed)
    broken = frozenset(random.sample(range(count), max(count // BROKEN, 1)))
    # Three faults that the node itself reports, and three that only the comparison with equal nodes shows.
    own = [measured(node(NODE, HEALTHY + text)) for text in OWN]
    kinds: list[Break] = [*(lambda report, rng, fault=fault: fault for fault in own), half_ports, slow_gpu, lost_nic]
    for number in range(count):
        report = kinds[number % len(kinds)](healthy(), random) if number in broken else healthy()
        yield replace(noisy(report, random), node=f"node{number:05}"), number in broken


def write(folder: str, count: int) -> frozenset[str]:
    """Write so many reports. Returns the names of the broken nodes."""
    found = set()
    for report, broken in reports(count):
        with open(os.path.join(folder, f"{report.node}.json"), "w") as file:
            file.write(as_json(report))
        if broken:
            found.add(report.node or "")
    return frozenset(found)


def noisy(report: Report, random: Random) -> Report:
    """The report with other rates."""
    levels = []
    for level in report.levels:
        noise = NOISE_MEMORY if len(level.ends) == 1 else NOISE
        levels.append(replace(level, observed=(level.observed or 0.0) * random.gauss(1, noise)))
    return replace(report, levels=tuple(levels))


def half_ports(report: Report, random: Random) -> Report:
    """All ports of the fabric run at half their rate: on one node, nothing shows it."""
    return _links(report, lambda link: link.kind == "port", 0.5)


def slow_gpu(report: Report, random: Random) -> Report:
    """Copies to and from one GPU lose 15 to 50 %, and the node's report was made without an expectation."""
    gpu, share = f"gpu{random.randrange(8)}", 1 - random.uniform(0.15, 0.5)
    levels = (
        replace(one, observed=(one.observed or 0.0) * share) if gpu in one.ends and len(one.ends) > 1 else one
        for one in report.levels
    )
    return replace(report, levels=tuple(levels))


def lost_nic(report: Report, random: Random) -> Report:
    """A NIC of the fabric that is gone since before the service was installed."""
    names = {"mlx5_9", "mlx5_9/1", "ib7"}
    gone = {one.id for one in report.topology.devices if names & {one.id, *one.aliases}}
    devices = tuple(one for one in report.topology.devices if one.id not in gone)
    links = tuple(one for one in report.topology.links if not {one.a, one.b} & gone)
    return replace(report, topology=type(report.topology)(devices, links))


def _links(report: Report, which: Callable[[Link], bool], share: float) -> Report:
    def slower(link: Link) -> Link:
        return replace(link, trained=link.trained * share) if which(link) and link.trained else link

    topology = report.topology
    return replace(report, topology=type(topology)(topology.devices, tuple(map(slower, topology.links))))
