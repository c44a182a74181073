"""The place of a node."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Place(Struct, frozen=True):
    """What one file says about a node.

    `labels` are those of linkgauge_node_info: leaf, spine, core (switches, from the node upwards), block,
    nvlink_domain, rack, zone. `ports` has the other end of each cable: port or network device -> "leaf3 port 17".
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)


TIERS = ("leaf", "spine", "core")
_LONGEST = 128  # characters of a name


def word(value: object) -> str:
    """A name from a file, as one printable line; "" if it is none."""
    text = value.strip() if isinstance(value, str) else ""
    return text if text.isprintable() and len(text) <= _LONGEST else ""


def known(values: Mapping[str, str]) -> dict[str, str]:
    """The values that are not empty."""
    return {name: value for name, value in values.items() if value}
