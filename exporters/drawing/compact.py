"""The diagram of a node for a narrow window, without columns for root ports, network ports, NVLink and arrays.

Root ports and switches that pass on one link become a line of the part below them. What is beside the PCIe tree becomes
a line of its device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...models.graph.topology import Topology
from ..text.terminal import safe
from .bars import Bar, bars_of
from .diagram import Diagram, Part, Words, few_lines
from .states import State
from .wires import Wire

_WORST: Sequence[State] = ("critical", "warning", "unread", "good")
_PASSED = {"root": "root port", "switch": "switch"}


def compact(diagram: Diagram, topology: Topology) -> Diagram:
    """The narrow diagram. All findings keep a place."""
    beside: dict[str, list[Words]] = {}
    for bar in bars_of(diagram, topology):
        for number, (name, wire) in enumerate(bar.ends):
            beside.setdefault(name, []).extend(_joined(bar, number, wire, topology))
    return replace(diagram, tops=tuple(_narrow(part, beside) for part in diagram.tops))


def _joined(bar: Bar, number: int, wire: Wire, topology: Topology) -> Iterator[Words]:
    """The line of one end of a bar."""
    if bar.title:
        text = wire.label or f"in {bar.title[0]}"
    else:
        other = topology.by_name[bar.ends[1 - number][0]]
        text = f"{wire.label} to {safe(other.aliases[0] if other.aliases else other.id)}"
    yield from few_lines(text, "device", wire.style)


def _narrow(part: Part, beside: Mapping[str, Sequence[Words]]) -> Part:
    part = _with(part, beside.get(part.device.id, ()))
    if part.column == "device":
        for port in part.below:
            lines = (*_port(port), *(line for line in port.lines[1:] if line.number is None))
            facts = tuple(line for line in port.lines if line.number is not None)
            state = min(part.state, port.state, key=_WORST.index)
            numbers = (*part.numbers, *port.numbers)
            part = replace(_with(part, lines), state=state, numbers=numbers)
            part = replace(part, lines=(*part.lines, *facts))
        return replace(part, below=())
    below = tuple(_narrow(one, beside) for one in part.below)
    if len(below) == 1 and _passes_on(part, below[0]):
        name = Words(f"{_PASSED[part.column]} {part.lines[0].text}")
        return _with(below[0], (name,))
    return replace(part, below=below)


def _passes_on(part: Part, below: Part) -> bool:
    """Whether the part says nothing but its name: it has no finding, and its link is like the one below."""
    if part.column not in _PASSED or part.numbers or part.state != "good" or below.wire is None:
        return False
    return part.wire is None or part.wire.label in ("", below.wire.label) and part.wire.state == "good"


def _port(port: Part) -> tuple[Words, ...]:
    """The name of the port with its rate, and the mark of a rate without independent evidence."""
    name, wire = port.lines[0].text, port.wire
    if wire is None:
        return few_lines(name, "device")
    rate = wire.label.partition(" (")[0] or ("" if port.numbers else "rate not known")
    doubt = (Words("no independent evidence"),) if wire.bare else ()
    return (*few_lines(": ".join(filter(None, (name, rate))), "device", wire.style), *doubt)


def _with(part: Part, lines: Sequence[Words]) -> Part:
    """The part with further lines above those of its findings."""
    at = next((number for number, line in enumerate(part.lines) if line.number is not None), len(part.lines))
    return replace(part, lines=(*part.lines[:at], *lines, *part.lines[at:]))
