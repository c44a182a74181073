"""Text files that say where a node is: Slurm's topology.yaml and topology.conf, and ibnetdiscover."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from .place import TIERS, Place, word

_SWITCH = re.compile(r"^[ \t]*-?[ \t]*(?P<kind>switch|block):[ \t]*(?P<name>[\"']?[\w.:-]{1,128}[\"']?)", re.MULTILINE)
_FIELD = re.compile(r"\b(?P<field>nodes|children):[ \t]*[\"']?(?P<list>[\w.,\[\]:-]{1,4000})")
_CONF = re.compile(
    r"^[ \t]*(?P<kind>Switch|Block)Name=(?P<name>[\w.:-]{1,128})[ \t]+(?P<rest>[^\n#]{1,4000})",
    re.MULTILINE | re.IGNORECASE,
)
_CONF_FIELD = re.compile(r"\b(?P<field>Nodes|Switches)=(?P<list>[\w.,\[\]:-]{1,4000})", re.IGNORECASE)
_ITEM = re.compile(r"(?P<head>[\w.:-]*)(?:\[(?P<ranges>[0-9,-]{1,400})\](?P<tail>[\w.:-]*))?")
_MOST = 100_000  # names in a range
# ibnetdiscover: a CA, then its ports: [1](ec0d9a03007d7f0a) "S-b8599f0300fc6de4"[17] # lid 3 lmc 0 "leaf3" lid 1 4xNDR
_CA = re.compile(r"^Ca[ \t]+\d{1,3}[ \t]+\"H-[0-9a-f]{16}\"[ \t]*# \"(?P<name>[^\"\n]{1,128})\"", re.MULTILINE)
_CABLE = re.compile(
    r"^\[(?P<own>\d{1,3})\](?:\([0-9a-f]{1,16}\))?[ \t]+\"S-(?P<guid>[0-9a-f]{16})\"\[(?P<port>\d{1,4})\]"
    r"[^\n#]{0,80}#(?P<rest>[^\n]{0,300})",
    re.MULTILINE,
)
_QUOTED = re.compile(r"\"([^\"\n]{1,128})\"")


def read_text(text: str, nodes: frozenset[str]) -> Place | None:
    """The place of the node with one of these names. None: the text is of no known kind."""
    if _CA.search(text):
        return Place(ports=dict(_ibnetdiscover(text, nodes)))
    groups = list(_groups(text))
    return Place(dict(_slurm(groups, nodes))) if groups else None


def _groups(text: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Kind ("switch", "block"), name, and lists ("nodes", "children") of each group."""
    for one, end in _sections(_SWITCH, text):
        body = text[one.end() : end]
        yield one["kind"], one["name"].strip("\"'"), {two["field"]: two["list"] for two in _FIELD.finditer(body)}
    for one in _CONF.finditer(text):
        fields = {two["field"].lower(): two["list"] for two in _CONF_FIELD.finditer(one["rest"])}
        yield (
            one["kind"].lower(),
            one["name"],
            {"nodes": fields.get("nodes", ""), "children": fields.get("switches", "")},
        )


def _sections(beginning: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Each match, and the position of the next one or of the end of the text."""
    found = list(beginning.finditer(text))
    yield from zip(found, [*(one.start() for one in found[1:]), len(text)], strict=False)


def _slurm(groups: Iterable[tuple[str, str, Mapping[str, str]]], nodes: frozenset[str]) -> Iterator[tuple[str, str]]:
    several = list(groups)
    yield from (
        ("block", name) for kind, name, lists in several if kind == "block" and contains(lists.get("nodes", ""), nodes)
    )
    below, field = nodes, "nodes"
    for tier in TIERS:
        above = (name for kind, name, lists in several if kind == "switch" and contains(lists.get(field, ""), below))
        if not (name := next(above, "")):
            return
        yield tier, name
        below, field = frozenset({name}), "children"


def contains(hostlist: str, names: frozenset[str]) -> bool:
    """Whether one of the names is in a list such as "n[01-04,7],m1"."""
    return any(not names.isdisjoint(_expanded(item)) for item in re.split(r",(?![^\[]*\])", hostlist) if item)


def _expanded(item: str) -> Iterator[str]:
    found = _ITEM.fullmatch(item)
    if not found or not found["ranges"]:
        yield item
        return
    left = _MOST
    for part in found["ranges"].split(","):
        first, _, last = part.partition("-")
        if not first or (last and int(last) - int(first) > left):
            return
        for number in range(int(first), int(last or first) + 1):
            yield f"{found['head']}{number:0{len(first)}d}{found['tail'] or ''}"
        left -= int(last or first) - int(first)


def _ibnetdiscover(text: str, nodes: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The switch and its port at each port of the node: "mlx5_0/1" from the name "node7 mlx5_0"."""
    for one, end in _sections(_CA, text):
        host, _, device = one["name"].rpartition(" ")
        if host not in nodes:
            continue
        for cable in _CABLE.finditer(text, one.end(), end):
            switch = next((word(name) for name in _QUOTED.findall(cable["rest"])), "") or cable["guid"]
            yield f"{device}/{cable['own']}", f"{switch} port {cable['port']}"
