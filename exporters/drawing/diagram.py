"""The parts of a node that a picture shows, as a tree: processors, root ports, switches, devices, network ports.

Ports and bridges that only pass on one link have no box of their own. Their findings are at the part that contains
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...models.graph.device_tree import DeviceTree, device_tree
from ...models.graph.topology import INSIDE, Device, Link, Topology
from ...models.report import Report
from ..text.quantities import bundle_of, rate_of
from ..text.terminal import safe, wrap
from ..text.vocabulary import counted, device_in_words
from .absent import ABSENT
from .shapes import PAD, characters, text_width
from .states import Marked, State, States, states_of, worst
from .wires import Wire, wire_of

Column: TypeAlias = Literal["processor", "root", "switch", "device", "port"]
_COLUMN: dict[str, Column] = {
    "numa": "processor",
    "package": "processor",
    "host": "processor",
    "root-port": "root",
    "upstream-port": "switch",
    "bridge": "switch",
    "port": "port",
    "netdev": "port",
}
_DRAWN = frozenset({"gpu", "nic", "nvme", "nvswitch", "port", "netdev", ABSENT})
_APART = frozenset({"fabric", "array", "netdev", "disk"})  # without a place in the PCIe tree
_MOST_FACTS, _MOST_LINES = 3, 4  # findings in a box, lines of a finding
_MARKS = re.compile(r"\((?:R|TM|C)\)| CPU\b| @.*")  # of the name of a processor


class Words(Struct, frozen=True):
    """One line of text of a part, with its style: "name", "soft", or a state."""

    text: str
    style: str = "soft"
    number: int | None = None  # of the finding that the text belongs to
    aside: str = ""  # at the right end of the line

    @property
    def width(self) -> float:
        """Pixels."""
        return text_width(self.text, self.style) + (text_width(self.aside) + PAD if self.aside else 0)


class Part(Struct, frozen=True):
    """A box. `wire` connects it to the part above it, `bypass` to the processor (C2C)."""

    device: Device
    column: Column
    lines: tuple[Words, ...]
    state: State
    wire: Wire | None = None
    bypass: Wire | None = None
    numbers: tuple[int, ...] = ()  # of all its findings
    below: tuple[Part, ...] = ()


class Diagram(Struct, frozen=True):
    """The trees of a node, and the findings that have no place in them."""

    tops: tuple[Part, ...]
    tree: DeviceTree
    states: States
    elsewhere: tuple[Marked, ...]
    skipped: int  # devices without a box


def diagram_of(report: Report, bottleneck: frozenset[str] = frozenset()) -> Diagram:
    """The diagram of a report's topology. `bottleneck`: ids of the links that limit a chosen path."""
    tree, states = device_tree(report.topology), states_of(report, bottleneck)
    tops = [one for one in report.topology.devices if one.id not in tree.link and one.kind not in _APART]
    parts = tuple(_drawable(part) for device in tops for part in _Builder(report, tree, states).parts(device))
    drawn = set(_names(parts))
    lost = {one.number: one for name, several in states.by_device.items() if name not in drawn for one in several}
    shown = {number for part in _every(parts) for number in part.numbers}
    missing = [one for one in (*states.elsewhere, *lost.values()) if one.number not in shown]
    kinds = [
        one for one in report.topology.devices if one.id not in drawn and one.kind in ("pci", "storage", "display")
    ]
    return Diagram(parts, tree, states, tuple(sorted(missing, key=lambda one: one.number)), len(kinds))


def interconnects(diagram: Diagram, topology: Topology) -> tuple[list[tuple[Part, Part, list[Link]]], list[Link]]:
    """The links between processors: those between neighbours in the picture, with both parts, and the others."""
    above = {below.id: name for name, several in diagram.tree.below.items() for below in several}
    tops = [part for part in diagram.tops if part.column == "processor"]
    names = {above.get(part.device.id, part.device.id) for part in tops}
    others = {link.id: link for link in topology.links if link.kind == "interconnect" and {link.a, link.b} <= names}
    found = []
    for one, two in pairwise(tops):
        ends = {above.get(part.device.id, part.device.id) for part in (one, two)}
        if links := [link for link in others.values() if {link.a, link.b} == ends]:
            found.append((one, two, links))
    drawn = {link.id for _, _, links in found for link in links}
    return found, [link for link in others.values() if link.id not in drawn]


def _drawable(part: Part, alone: bool = True) -> Part:
    """The part with C2C as a line of text where a wire would cross other parts. `alone`: in its root port or switch."""
    inner = part.column == "processor" or alone and len(part.below) == 1
    below = tuple(_drawable(one, inner) for one in part.below)
    if part.bypass is None or alone:
        return replace(part, below=below)
    return replace(part, below=below, bypass=None, lines=(*part.lines, Words(part.bypass.label, part.bypass.style)))


def _every(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from _every(part.below)


def _names(parts: Sequence[Part]) -> Iterator[str]:
    return (part.device.id for part in _every(parts))


class _Builder(Struct, frozen=True):
    """Builds the parts of one report."""

    report: Report
    tree: DeviceTree
    states: States

    def parts(self, device: Device, inside: tuple[Device, ...] = ()) -> Iterator[Part]:
        """The part of a device, or those below it if it has no box. `inside`: devices above it without a box."""
        below = self.tree.below.get(device.id, ())
        column = _COLUMN.get(device.kind, "device")
        if column in ("processor", "root", "switch"):
            if device.kind != "numa" and any(one.kind in ("numa", "package") for one in below):
                yield from (part for one in below for part in self.parts(one, (*inside, device)))
            elif parts := tuple(part for one in below for part in self.parts(one)):
                yield self._part(device, column, (*inside, device), parts)
            elif column == "processor" and device.id in self.report.topology.memory:
                yield self._part(device, column, (*inside, device), ())
        elif device.kind in ("host-bridge", "downstream-port"):
            yield from (part for one in below for part in self.parts(one, (*inside, device)))
        elif device.kind in _DRAWN or self._has_finding(device):
            yield self._device(device, inside)

    def _has_finding(self, device: Device) -> bool:
        return any(one.id in self.states.by_device for one in (device, *self.tree.below.get(device.id, ())))

    def _device(self, device: Device, above: tuple[Device, ...]) -> Part:
        """The box of a device. Its further functions, disks and names are parts of the box."""
        inner = list(_within(device, self.tree))
        ports = tuple(self._port(one) for one in inner if one.kind == "port")
        bare = [one for one in inner if one.kind == "netdev"]
        ports += tuple(self._port(one) for one in bare if self.tree.link[one.id].a in _functions(device, inner))
        merged = tuple(one for one in inner if one.kind not in ("port", "netdev"))
        return self._part(device, "device", (*above, device, *merged), ports if device.kind != "gpu" else ())

    def _port(self, device: Device) -> Part:
        merged = (device, *self.tree.below.get(device.id, ()))
        part = self._part(device, "port", merged, ())
        known = (self.report.cables.get(name) for one in merged for name in (one.id, *one.aliases))
        other_end = next(filter(None, known), "")
        lines = few_lines(f"to {safe(other_end)}", "port") if other_end else ()
        return replace(part, lines=(part.lines[0], *lines, *part.lines[1:]))

    def _part(self, device: Device, column: Column, merged: tuple[Device, ...], below: tuple[Part, ...]) -> Part:
        """A box that shows the findings of all merged devices."""
        marked = {one.number: one for each in merged for one in self.states.by_device.get(each.id, ())}
        facts = tuple(words for one in [*marked.values()][:_MOST_FACTS] for words in _fact(one, column))
        more = len(marked) - _MOST_FACTS
        shown = (*facts, *((Words(f"and {counted(more, 'more finding')}"),) if more > 0 else ()))
        unread = any(each.id in self.states.unread_devices for each in merged)
        state = worst(marked.values()) or ("unread" if unread else "good")
        wire = self._wire(device, state)
        lines = (*self._lines(device, column, merged), *shown)
        return Part(device, column, lines, state, wire, self._bypass(device), tuple(marked), below)

    def _wire(self, device: Device, state: State) -> Wire | None:
        link = self.tree.link.get(device.id)
        if link is None:
            return None
        return wire_of(self.states, [link], rate_of(link), state if link.kind in INSIDE else "good")

    def _bypass(self, device: Device) -> Wire | None:
        links = [link for _, several in self.tree.across.get(device.id, ()) for link in several if link.kind == "c2c"]
        return wire_of(self.states, links, bundle_of(links)) if links else None

    def _lines(self, device: Device, column: Column, merged: tuple[Device, ...]) -> Iterator[Words]:
        """The name, what it is, and its memory."""
        name = safe(device.aliases[0] if device.aliases else _short(device.id))
        others = [safe(one.id) for one in merged if one.kind in ("disk", "netdev") and one.id != name]
        yield Words(" ".join([name, *others]), "name", aside=_short(safe(device.id)) if device.aliases else "")
        if device.kind == "numa":
            about = [text for one in merged if one.kind == "package" for text in (safe(one.id), _product(one))]
        elif column == "device":
            about = [_product(device) or device_in_words(device.kind)]
        else:
            about = [_product(device)] if column == "switch" else []
        yield from (words for text in about if text for words in few_lines(text, column))
        if hop := self.report.topology.memory.get(device.id):
            yield Words(f"memory {rate_of(hop.links[0])}".strip())


def few_lines(
    text: str, column: Column, style: str = "soft", number: int | None = None, most: int = 2
) -> tuple[Words, ...]:
    """The text in at most so many lines of a box."""
    lines = wrap(text, characters(column, style))
    last = [" ".join(lines[most - 1 :])] if len(lines) >= most else []
    return tuple(Words(line, style, number) for line in (*lines[: most - 1], *last))


def _within(device: Device, tree: DeviceTree) -> Iterator[Device]:
    """The functions, ports, disks and network devices of a card."""
    for one in tree.below.get(device.id, ()):
        if tree.link[one.id].kind in INSIDE and one.kind != "partition":
            yield one
            yield from _within(one, tree)


def _functions(device: Device, inner: Sequence[Device]) -> set[str]:
    return {device.id, *(one.id for one in inner if one.kind == "nic")}


def _fact(one: Marked, column: Column) -> tuple[Words, ...]:
    """The fact of a finding."""
    style = one.finding.severity if one.finding.severity != "info" else "soft"
    return few_lines(safe(one.finding.fact or one.finding.code), column, style, one.number, _MOST_LINES)


def _product(device: Device) -> str:
    """The name of the product, without the marks of its vendor."""
    return safe(_MARKS.sub("", device.name))


def _short(address: str) -> str:
    """A PCI address without the domain 0000."""
    return address.removeprefix("0000:")
