"""The place of a node: rack, switches, NVLink domain, and the other ends of its cables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from ...models.fabric.wiring import Wiring


class Place(Struct, frozen=True):
    """What one file says about a node.

    `labels` are those of linkgauge_node_info: leaf, spine, core (switches, from the node upwards), block,
    nvlink_domain, rack, zone. `ports` has the other end of each cable: port or network device -> "leaf3 port 17".
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)


TIERS = ("leaf", "spine", "core")
_LONGEST = 128  # characters of a name


def place_of(wiring: Wiring, nodes: frozenset[str]) -> Place:
    """The labels and cables of the node with one of these names."""
    labels = next((own for name, own in wiring.labels.items() if name in nodes), {})
    ports = {}
    for port in wiring.sockets:
        node, _, device = port.partition("/")
        if device and node in nodes:
            ports[device] = word(f"{wiring.leaves[port]} {wiring.sockets[port]}")
    return Place(known({name: word(value) for name, value in labels.items()}), known(ports))


def tiers(switches: Iterable[str]) -> dict[str, str]:
    """The labels of the switches above a node, the nearest first."""
    return dict(zip(TIERS, switches, strict=False))


def word(value: object) -> str:
    """A name from a file, as one printable line; "" if it is none."""
    text = value.strip() if isinstance(value, str) else ""
    return text if text.isprintable() and len(text) <= _LONGEST else ""


def known(values: Mapping[str, str]) -> dict[str, str]:
    """The values that are not empty."""
    return {name: value for name, value in values.items() if value}
