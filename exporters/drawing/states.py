"""Which findings, doubts and gaps of a report belong to which device and link of its topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ...models.graph.topology import Link, Topology
from ...models.report import SEVERITIES, Finding, Report

State: TypeAlias = Literal["good", "warning", "critical", "unread"]
_LINK_FIELDS = frozenset({"Pci", "Pci.speed", "Pci.width", "Pci.max_speed", "Pci.max_width"})
_OF_END = frozenset({"pcie", "port"})  # reports name such a link by the device at its lower end
_DEVICES = frozenset({"Gpu", "Port", "Nvme", "Net", "Rdma", "Pci"})  # kinds of facts that were not read at all
_OF_NODE: Mapping[str, str] = {"Gpu": "gpu", "Port": "port", "Nvme": "nvme"}  # kind of fact -> kind of device


class Marked(Struct, frozen=True):
    """A finding with its number in lists of findings, from 1."""

    number: int
    finding: Finding


class States(Struct, frozen=True):
    """Findings by device id and by link id; links without independent evidence; what was not read."""

    by_device: Mapping[str, tuple[Marked, ...]]
    by_link: Mapping[str, tuple[Marked, ...]]
    elsewhere: tuple[Marked, ...]  # findings about parts that the topology does not have
    bare: frozenset[str]  # ids of links
    unread_links: frozenset[str]
    unread_devices: frozenset[str]
    bottleneck: frozenset[str]  # ids of the links that limit the chosen path

    def of_device(self, name: str) -> State:
        """The state of a device."""
        return worst(self.by_device.get(name, ())) or ("unread" if name in self.unread_devices else "good")

    def of_links(self, links: Iterable[Link]) -> State:
        """The state of parallel links. A link without any rate is unread."""
        several = tuple(links)
        if found := worst(one for link in several for one in self.by_link.get(link.id, ())):
            return found
        unread = any(link.id in self.unread_links or link.rated is link.trained is None for link in several)
        return "unread" if unread else "good"


def active(report: Report) -> tuple[Finding, ...]:
    """The findings that are not silenced, worst first, in the order of the HTML report."""
    shown = (one for one in report.findings if one.silenced is None)
    return tuple(sorted(shown, key=lambda one: SEVERITIES.index(one.severity)))


def worst(marked: Iterable[Marked]) -> State | None:
    """The state of a part with these findings; None without a warning or a critical finding."""
    severities = {one.finding.severity for one in marked}
    return "critical" if "critical" in severities else "warning" if "warning" in severities else None


def states_of(report: Report, bottleneck: frozenset[str]) -> States:
    """The states of all parts of the report's topology."""
    topology = report.topology
    by_device: dict[str, list[Marked]] = {}
    by_link: dict[str, list[Marked]] = {}
    elsewhere = []
    for number, finding in enumerate(active(report), 1):
        one, device = Marked(number, finding), topology.find(finding.subject)
        for link in finding.limits:
            by_link.setdefault(link, []).append(one)
        if device:
            by_device.setdefault(device.id, []).append(one)
        else:
            elsewhere.append(one)
    bare = {one.subject for one in report.coverage.uncorroborated if one.group == "links"}
    return States(
        {name: tuple(several) for name, several in by_device.items()},
        {name: tuple(several) for name, several in by_link.items()},
        tuple(elsewhere),
        frozenset(link.id for link in topology.links if {link.id, link.b if link.kind in _OF_END else ""} & bare),
        frozenset(_unread_links(report, topology)),
        frozenset(_unread_devices(report, topology)),
        bottleneck,
    )


def _unread_links(report: Report, topology: Topology) -> Iterable[str]:
    for one in report.not_checked:
        if one.what in _LINK_FIELDS and (link := topology.link_below.get(one.subject)):
            yield link.id


def _unread_devices(report: Report, topology: Topology) -> Iterable[str]:
    for one in report.not_checked:
        device = topology.find(one.subject) if one.what in _DEVICES else None
        if device:
            yield device.id
        elif one.subject == "node" and one.what in _OF_NODE:
            yield from (each.id for each in topology.devices if each.kind == _OF_NODE[one.what])
