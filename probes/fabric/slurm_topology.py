"""Slurm's topology.conf(5) and topology.yaml(5): leaf switches or blocks with their nodes, and switches above."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ...models.fabric.wiring import Wiring
from .hostlist import expand
from .place import TIERS, tiers

_CONF = re.compile(r"(?im)^[ \t]*(?:SwitchName|BlockName)[ \t]*=")
_YAML = re.compile(r"(?m)^[ \t-]*(?:switch|block):[ \t]*\S")
_PAIR = re.compile(r"(\w+)[ \t]*=[ \t]*(\S+)")
_LINE = re.compile(r"(?P<item>-[ \t]+)?(?P<key>\w+):[ \t]*[\"']?(?P<value>[^\"'#]*?)[\"']?[ \t]*(?:#.*)?")


def is_conf(text: str) -> bool:
    """Whether the text is a topology.conf."""
    return _CONF.search(text) is not None


def is_yaml(text: str) -> bool:
    """Whether the text is a topology.yaml in block style."""
    return _YAML.search(text) is not None


def read_conf(text: str) -> Wiring:
    """The leaves of a topology.conf. Raises ValueError."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return _wiring({key.lower(): value for key, value in _PAIR.findall(line.partition("#")[0])} for line in lines)


def read_yaml(text: str) -> Wiring:
    """The leaves of a topology.yaml. Raises ValueError."""
    return _wiring(_items(text))


def _items(text: str) -> Iterator[Mapping[str, str]]:
    """The switches and blocks as keys of topology.conf."""
    keys = {"switch": "switchname", "block": "blockname", "children": "switches"}
    current: dict[str, str] = {}
    for line in text.splitlines():
        if found := _LINE.fullmatch(line.strip()):
            if found["item"]:
                yield current
                current = {}
            current[keys.get(found["key"], found["key"])] = found["value"]
    yield current


def _wiring(rows: Iterable[Mapping[str, str]]) -> Wiring:
    """Blocks are leaves of nodes without a switch. What comes first counts."""
    blocks, leaves, above = dict[str, str](), dict[str, str](), dict[str, str]()
    for row in rows:
        if switch := row.get("switchname"):
            _add(leaves, row.get("nodes", ""), switch)
            _add(above, row.get("switches", ""), switch)
        elif block := row.get("blockname"):
            _add(blocks, row.get("nodes", ""), block)
    labels = {node: {"block": block} for node, block in blocks.items()}
    for node, leaf in leaves.items():
        labels[node] = {**tiers(_upwards(leaf, above)), **labels.get(node, {})}
    known = set(leaves.values())
    return Wiring({**blocks, **leaves}, {}, {leaf: one for leaf, one in above.items() if leaf in known}, labels)


def _add(parents: dict[str, str], hostlist: str, parent: str) -> None:
    for name in expand(hostlist):
        parents.setdefault(name, parent)


def _upwards(leaf: str, above: Mapping[str, str]) -> Iterator[str]:
    """The leaf and the switches above it, as many as there are tiers."""
    current: str | None = leaf
    for _ in TIERS:
        if current is None:
            return
        yield current
        current = above.get(current)
