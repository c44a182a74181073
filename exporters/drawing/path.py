"""The connection of two devices in a picture: its links, and the link that limits it."""

from __future__ import annotations

from msgspec import Struct

from ...models.facts.records import Flow
from ...models.facts.units import as_gigabytes
from ...models.graph.flow_paths import hops_of
from ...models.graph.routes import active, limited
from ...models.graph.topology import Device, Hop, Topology
from ...models.report import Report
from ..text.terminal import safe


class Path(Struct, frozen=True):
    """The links of the hops by id, those of the slowest hop, and one line that describes both."""

    links: frozenset[str]
    bottleneck: frozenset[str]
    text: str


def no_path() -> Path:
    """Nothing is marked."""
    return Path(frozenset(), frozenset(), "")


def path_of(report: Report, source: str, target: str) -> Path | None:
    """The path of a copy between two devices. None: a name is unknown, or nothing connects them.

    The bottleneck is the hop with the lowest present rate, with the limits of the findings.
    """
    topology = report.topology
    hops = hops_of(topology, Flow("copy", (source, target)))
    if not hops:
        return None
    limits = {link: rate for finding in report.findings for link, rate in finding.limits.items()}
    rate = limited(limits, active)
    slowest = min(hops, key=rate)
    known = rate(slowest) < float("inf")
    ends = f"{safe(source)} to {safe(target)}"
    text = (
        f"{ends}: bottleneck {_hop(topology, slowest)}, {as_gigabytes(rate(slowest))}"
        if known
        else f"{ends}: no rate is known"
    )
    return Path(_links(hops), _links((slowest,)) if known else frozenset(), text)


def _links(hops: tuple[Hop, ...]) -> frozenset[str]:
    return frozenset(link.id for hop in hops for link in hop.links)


def _hop(topology: Topology, hop: Hop) -> str:
    one, two = (safe(device.aliases[0] if device.aliases else device.id) for device in _ends(topology, hop))
    return f"memory of {one}" if one == two else f"{one} to {two}"


def _ends(topology: Topology, hop: Hop) -> tuple[Device, Device]:
    return topology.by_name[hop.sender], topology.by_name[hop.receiver]
