"""What joins devices beside the PCIe tree: an NVLink domain, a mesh of GPUs, a pair of GPUs, an array of disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...models.graph.topology import FABRIC, Link, Topology
from ..text.quantities import bundle_of
from ..text.terminal import safe
from ..text.vocabulary import counted
from .diagram import Diagram
from .wires import Wire, wire_of

_PEERS = ("nvlink", "xgmi")
_MOST_PAIRS = 6  # that are drawn one by one
_MOST_WIRES = 3  # of these at one GPU
_NAMES = {"nvlink": "NVLink", "xgmi": "xGMI"}


class Bar(Struct, frozen=True):
    """Devices, by id, each with its wire to the bar. A bar without a title is a line between two devices."""

    title: tuple[str, ...]  # its name, and what it is
    ends: tuple[tuple[str, Wire], ...]


def bars_of(diagram: Diagram, topology: Topology) -> tuple[Bar, ...]:
    """The bars of a node, those nearest to the devices first."""
    return (*_peers(diagram, topology), *_fabric(diagram, topology), *_arrays(diagram, topology))


def _fabric(diagram: Diagram, topology: Topology) -> Iterator[Bar]:
    """The NVLink domain: all NVSwitches, in this machine or in the rack."""
    links: dict[str, list[Link]] = {}
    for link in topology.links:
        if link.kind == "nvlink" and topology.kind(link.b) in ("fabric", "nvswitch"):
            links.setdefault(link.a, []).append(link)
    if links:
        switches = sum(device.kind == "nvswitch" for device in topology.devices)
        within = counted(switches, "NVSwitch", "NVSwitches") if switches else "switches outside"
        fabric = topology.find(FABRIC)
        about = (safe(fabric.name),) if fabric and fabric.name and not switches else (within,)
        yield Bar(("NVLink domain", *about), tuple(_ends(diagram, links)))


def _peers(diagram: Diagram, topology: Topology) -> Iterator[Bar]:
    """Direct links between GPUs: few pairs one by one, a mesh as one bar."""
    pairs: dict[tuple[str, str], list[Link]] = {}
    for link in topology.links:
        if link.kind in _PEERS and topology.kind(link.a) == topology.kind(link.b) == "gpu":
            pairs.setdefault((min(link.a, link.b), max(link.a, link.b)), []).append(link)
    wires = Counter(name for pair in pairs for name in pair)
    if len(pairs) <= _MOST_PAIRS and max(wires.values(), default=0) <= _MOST_WIRES:
        for (one, two), links in pairs.items():
            wire = wire_of(diagram.states, links, bundle_of(links))
            yield Bar((), ((one, wire), (two, wire)))
        return
    own: dict[str, list[Link]] = {}
    for (one, two), links in pairs.items():
        own.setdefault(one, []).extend(links)
        own.setdefault(two, []).extend(links)
    every = len(pairs) * 2 == len(own) * (len(own) - 1)
    kind = _NAMES[next(iter(pairs.values()))[0].kind]
    about = "each GPU to each other" if every else f"{len(pairs)} pairs of GPUs"
    yield Bar((kind, about), tuple(_ends(diagram, own)))


def _arrays(diagram: Diagram, topology: Topology) -> Iterator[Bar]:
    """Arrays of disks. Only disks on PCIe have a box."""
    holder = {below.id: name for name, several in diagram.tree.below.items() for below in several}
    for device in topology.devices:
        if device.kind == "array":
            members = [link for link in topology.links if link.kind == "member" and link.b == device.id]
            ends = {holder.get(link.a, link.a): [link] for link in members}
            yield Bar((safe(device.id), safe(device.name)), tuple(_ends(diagram, ends)))


def _ends(diagram: Diagram, links: dict[str, list[Link]]) -> Iterator[tuple[str, Wire]]:
    for name, several in links.items():
        yield name, wire_of(diagram.states, several, _label(several))


def _label(links: Sequence[Link]) -> str:
    return "" if links[0].kind == "member" else bundle_of(links)
