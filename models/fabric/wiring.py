"""Ports of nodes, and the switches that they connect to, as far as the topology is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field


class Port(Struct, frozen=True, order=True):
    """A port of a node. The ports of one rail reach each other. The rail "" is the only one."""

    node: str
    rail: str = ""  # "eth1" or "mlx5_0/1"

    @property
    def name(self) -> str:
        """The name in findings: "node5", "node5/mlx5_0/1"."""
        return f"{self.node}/{self.rail}" if self.rail else self.node


class Pair(Struct, frozen=True, order=True):
    """A flow from a port to another."""

    sender: Port
    receiver: Port

    @property
    def name(self) -> str:
        """The name in findings: "node1->node5"."""
        return f"{self.sender.name}->{self.receiver.name}"


class Wiring(Struct, frozen=True):
    """The leaf switch of each node or port, and the port of the switch. Keys are names of nodes or of ports.

    `labels` are those of linkgauge_node_info. `merged`, `named` and `of_rails` drop them.
    """

    leaves: Mapping[str, str] = field(default_factory=dict)
    sockets: Mapping[str, str] = field(default_factory=dict)  # "swp12", "port 12"
    above: Mapping[str, str] = field(default_factory=dict)  # leaf -> the switches above it, for findings
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # node -> "leaf", "spine", "block", "zone"

    def leaf(self, port: Port) -> str | None:
        """The leaf of a port. None: not known."""
        return self.leaves.get(port.name) or self.leaves.get(port.node)

    def crossed(self, pair: Pair) -> tuple[str, str] | None:
        """The leaves that a flow leaves and enters. None: it stays below one leaf, or a leaf is not known."""
        ends = self.leaf(pair.sender), self.leaf(pair.receiver)
        return (ends[0], ends[1]) if ends[0] and ends[1] and ends[0] != ends[1] else None

    def place(self, port: Port) -> str:
        """ "leaf3 swp12"; empty if not known."""
        socket = self.sockets.get(port.name) or self.sockets.get(port.node)
        return " ".join(one for one in (self.leaf(port), socket) if one)


def merged(wirings: Iterable[Wiring]) -> Wiring:
    """All of them as one. What comes first counts."""
    leaves: dict[str, str] = {}
    sockets: dict[str, str] = {}
    above: dict[str, str] = {}
    for one in wirings:
        leaves = {**one.leaves, **leaves}
        sockets = {**one.sockets, **sockets}
        above = {**one.above, **above}
    return Wiring(leaves, sockets, above)


def named(wiring: Wiring, aliases: Mapping[str, Iterable[str]]) -> Wiring:
    """The wiring with the names of nodes (node -> its other names) in place of their aliases."""
    names = {alias: node for node, several in aliases.items() for alias in (*several, node)}

    def renamed(texts: Mapping[str, str]) -> dict[str, str]:
        parts = ((key.partition("/"), text) for key, text in texts.items())
        return {f"{names.get(node, node)}{slash}{rail}": text for (node, slash, rail), text in parts}

    return Wiring(renamed(wiring.leaves), renamed(wiring.sockets), wiring.above)


def of_rails(wiring: Wiring, rails: Mapping[str, Mapping[str, str]]) -> Wiring:
    """The wiring by the rails of the plan: node -> rail -> name of its device ("eth1", "mlx5_0/1")."""

    def renamed(texts: Mapping[str, str]) -> dict[str, str]:
        found = {}
        for node, own in rails.items():
            for rail, device in own.items():
                if text := texts.get(f"{node}/{device}") or texts.get(node):
                    found[Port(node, rail).name] = text
        return found

    return Wiring(renamed(wiring.leaves), renamed(wiring.sockets), wiring.above)
