"""The links of a view below the NUMA nodes and PCIe switches to which they belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ..graph.path_types import natural
from ..graph.topology import Topology
from .view import Traffic

_WITHIN = frozenset({"internal", "pcie", "port", "disk", "function"})  # kinds of links from a parent to its part
_TITLES = {"numa": "NUMA node", "upstream-port": "PCIe switch"}
_ELSEWHERE = "elsewhere"


class Branch(Struct, frozen=True):
    """A NUMA node or a switch, its links, and the switches below it."""

    title: str
    links: tuple[Traffic, ...]
    below: tuple[Branch, ...]


def branches(links: Iterable[Traffic], topology: Topology) -> tuple[Branch, ...]:
    """The branches that have links. Links of devices without a known place are in the last one."""
    above: dict[str, str] = {}
    for link in topology.links:
        if link.kind in _WITHIN and link.a != link.b:
            above.setdefault(link.b, link.a)
    below: dict[str, list[str]] = {}  # NUMA node or switch -> those below it
    own: dict[str, list[Traffic]] = {}
    for one in links:
        places = [name for name in _chain(one.carrier.subject, above) if topology.kind(name) in _TITLES]
        own.setdefault(places[0] if places else "", []).append(one)
        for part, whole in zip(places, [*places, ""][1:], strict=True):
            parts = below.setdefault(whole, [])
            parts += [] if part in parts else [part]
    found = tuple(_branch(name, topology, own, below) for name in sorted(below.get("", []), key=natural))
    loose = own.get("", [])
    return (*found, Branch(_ELSEWHERE if found else "", tuple(loose), ())) if loose else found


def _chain(name: str, above: Mapping[str, str]) -> Sequence[str]:
    """The device and all its ancestors."""
    chain = [name]
    while chain[-1] in above and above[chain[-1]] not in chain:
        chain.append(above[chain[-1]])
    return chain


def _branch(
    name: str,
    topology: Topology,
    own: Mapping[str, Sequence[Traffic]],
    below: Mapping[str, Sequence[str]],
) -> Branch:
    device = topology.by_name[name]
    number = name.removeprefix("numa") if device.kind == "numa" else name
    title = " ".join(filter(None, (_TITLES[device.kind], number, device.name if device.kind != "numa" else "")))
    parts = tuple(_branch(part, topology, own, below) for part in below.get(name, ()))
    return Branch(title, tuple(own.get(name, ())), parts)
