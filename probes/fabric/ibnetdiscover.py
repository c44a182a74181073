"""ibnetdiscover(8) of infiniband-diags: the switch and its port for each port of a host channel adapter."""

from __future__ import annotations

import re
from collections import defaultdict

from ...models.fabric.wiring import Wiring

_SWITCH = re.compile(r'Switch\s+[0-9]{1,5}\s+"(?P<id>S-[0-9a-f]{1,16})"\s+#\s+"(?P<name>[^"]{0,64})"')
_LINK = re.compile(
    r'\[(?P<at>[0-9]{1,5})\](?:\([0-9a-f]{1,16}\))?\s+"(?P<id>[HSR]-[0-9a-f]{1,16})"\[(?P<port>[0-9]{1,5})\]'
    r'(?:\([0-9a-f]{1,16}\))?\s+#\s+"(?P<name>[^"]{0,64})"'
)
_DEVICE = re.compile(r"[a-z][\w.-]*[0-9]\w*")  # "mlx5_0", not "HCA-1"


def is_ibnetdiscover(text: str) -> bool:
    """Whether the text is such an output."""
    return any(_SWITCH.match(line) for line in text.splitlines())


def read(text: str) -> Wiring:
    """The leaves of the ports ("node1/mlx5_0/1") and of the nodes with one leaf. Descriptions name them."""
    leaves, sockets = dict[str, str](), dict[str, str]()
    peers = defaultdict[str, set[str]](set)
    current = None
    for line in text.splitlines():
        if not line.startswith("["):
            found = _SWITCH.match(line)
            current = (found["name"] or found["id"]) if found else None
        elif current and (link := _LINK.match(line)):
            if link["id"].startswith("S"):
                peers[current].add(link["name"] or link["id"])
            elif link["id"].startswith("H"):
                key = _port(link["name"], link["port"])
                leaves[key], sockets[key] = current, f"port {link['at']}"
    above = {leaf: ", ".join(sorted(peers[leaf])) for leaf in set(leaves.values())}
    return Wiring({**_nodes(leaves), **leaves}, sockets, {leaf: names for leaf, names in above.items() if names})


def _port(description: str, port: str) -> str:
    """ "node1/mlx5_0/1" for the description "node1 mlx5_0"; else the node alone."""
    node, _, device = description.partition(" ")
    return f"{node}/{device}/{port}" if _DEVICE.fullmatch(device) else node


def _nodes(leaves: dict[str, str]) -> dict[str, str]:
    """The leaf of each node whose ports are all on one."""
    found = defaultdict[str, set[str]](set)
    for key, leaf in leaves.items():
        found[key.partition("/")[0]].add(leaf)
    return {node: min(several) for node, several in found.items() if len(several) == 1}
