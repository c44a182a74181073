"""Slurm's topology.conf(5) and topology.yaml(5): leaf switches or blocks with their nodes, and switches above."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ...models.fabric.wiring import Wiring
from .node_lists import names

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
    leaves: dict[str, str] = {}
    above: dict[str, str] = {}
    for row in rows:
        name = row.get("switchname") or row.get("blockname")
        if not name:
            continue
        leaves.update(dict.fromkeys(names(row.get("nodes", "")), name))
        above.update(dict.fromkeys(names(row.get("switches", "")), name))
    known = set(leaves.values())
    return Wiring(leaves, {}, {leaf: one for leaf, one in above.items() if leaf in known})
