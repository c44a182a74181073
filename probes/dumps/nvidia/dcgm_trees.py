"""Trees of dcgmi, as tables and as JSON: `health -c`, `topo --gpuid`, `nvlink -e`. dcgmi/DcgmiOutput.cpp, Health.cpp,
Topo.cpp and Nvlink.cpp of https://github.com/NVIDIA/DCGM.

DCGM has one name, "CPU-level link", for paths within a processor and between processors. The reader gives no path for
such a pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Gpu, GpuLink, GpuPair
from ....models.facts.records import Evidence, Observation, Record
from ...parsing.nvml_enums import PATHS
from ..core.fields import FactCollector
from ..core.json_values import list_of, object_of
from ..core.part import Part
from . import dcgm_words
from .dcgm_diag import cells

_BRANCH = re.compile(r"\|([ ]{1,12})-> ")
_GPU = re.compile(r"GPU(?: ID:)? ([0-9]{1,3})")
_PEER = re.compile(r"To GPU ([0-9]{1,3})")
_LINK = re.compile(r"Link ([0-9]{1,2})")
_LINKS = re.compile(r"Connected via [a-z]{3,9} NVLINKs? \(Links?: ([0-9, ]{1,160})\)")
_CPUS = re.compile(r"([0-9]{1,4})(?: - ([0-9]{1,4}))?")
_MOST_CPUS = 8192
_COUNT = re.compile(r"[0-9]{1,18}")
_PATHS = {
    "Connected via an on-board PCIe switch": PATHS[0],
    "Connected via a single PCIe switch": PATHS[10],
    "Connected via multiple PCIe switches": PATHS[20],
    "Connected via a PCIe host bridge": PATHS[30],
}
# Counters of a link until Hopper; sums over the links of a GPU since Blackwell.
_COUNTERS = {
    "CRC FLIT Error": "nvlink_crc",
    "CRC Data Error": "nvlink_crc",
    "Replay Error": "nvlink_replay",
    "Recovery Error": "nvlink_recovery",
    "Rx Symbol Error": "nvlink_symbol_errors",
    "Effective Error": "nvlink_effective_errors",
}
_BAD = ("Warning", "Failure", "Internal error")
_ERRORS = "Errors"


class _Node(Struct):
    """A row: the names of its ancestors and its own name, and its texts."""

    path: tuple[str, ...]
    where: Evidence
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def read_text(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """Read a table with the heading of a tree."""
    nodes: list[_Node] = []
    gpu: str | None = None
    for number, line in rows:
        name, text = cells(line)
        text = text.strip()
        branch = _BRANCH.match(line.strip())
        depth = 1 + (len(branch[1]) - 1) // 3 if branch else 0
        if not text and not nodes and (own := _GPU.fullmatch(name)):
            gpu = f"gpu{int(own[1])}"
        elif name and line.count("|") > 2:
            above = nodes[-1].path[:depth] if nodes else ()
            nodes.append(_Node((*above, name.removeprefix("-> ")), part.cite(number, line), [text] if text else []))
        elif text and nodes:
            nodes[-1].texts.append(text)
    yield from _read(part, nodes, gpu, found)


def read_json(part: Part, whole: Mapping[str, Any], text: str, first: int, found: FactCollector) -> Iterator[Record]:
    """Read the same tree from JSON. Evidence cites the first line, because names repeat below each GPU."""
    nodes: list[_Node] = []
    where = part.where(first)
    _flatten(object_of(whole.get("body")), (), where, nodes)
    heads = (_GPU.fullmatch(head) for head in list_of(whole.get("header")) if isinstance(head, str))
    gpu = next((f"gpu{int(own[1])}" for own in heads if own), None)
    yield from _read(part, nodes, gpu, found)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _flatten(children: Mapping[str, Any], above: tuple[str, ...], where: str, nodes: list[_Node]) -> None:
    for name, child in children.items():
        members = object_of(child)
        texts = [
            str(text) for text in (members.get("value"), *list_of(members.get("overflow"))) if text not in (None, "")
        ]
        nodes.append(_Node((*above, name), Evidence(where, _one_line(": ".join((name, *texts)))), texts))
        if len(above) < 4:
            _flatten(object_of(members.get("children")), (*above, name), where, nodes)


def _read(part: Part, nodes: list[_Node], gpu: str | None, found: FactCollector) -> Iterator[Record]:
    counts: dict[str, dict[int | None, tuple[float, Evidence]]] = {}
    for node in (one for place, one in enumerate(nodes) if not place or not _is_repeated(one, nodes[place - 1])):
        if len(node.path) == 4 and node.path[2] == _ERRORS:
            yield from _unhealthy(node, found)
        elif len(node.path) == 1 and node.text in _BAD and (own := _GPU.fullmatch(node.path[0])):
            yield from dcgm_words.unhealthy("all systems", f"gpu{int(own[1])}", node.text, "", node.where, found)
        elif gpu and node.path == ("CPU Core Affinity",):
            found.take(Gpu, gpu, node.where, "cpus", node.text, _cpus)
        elif gpu and len(node.path) == 1 and (peer := _PEER.fullmatch(node.path[0])):
            _pair(gpu, int(peer[1]), node, found)
        elif gpu and len(node.path) == 2 and _COUNT.fullmatch(node.text):
            _count(node, counts)
    if gpu:
        yield from _counter_records(part, gpu, counts, found)


def _is_repeated(node: _Node, above: _Node) -> bool:
    return (node.path, node.texts) == (above.path, above.texts)


def _unhealthy(node: _Node, found: FactCollector) -> Iterator[Record]:
    """Add the problems that DCGM's health watch reports for a system of a GPU or another entity."""
    # The row of the kind of entity is missing if the entity is below the first row of the table.
    whole = node.path[0] == "Overall Health"
    entity = "node" if whole else f"{node.path[0]}{node.path[1]}".lower().replace(" ", "")
    verdict, *words = node.texts or [""]
    if verdict in _BAD:
        yield from dcgm_words.unhealthy(node.path[3], entity, verdict, " ".join(words), node.where, found)


def _cpus(text: str) -> tuple[int, ...] | None:
    """The CPUs of "0 - 31, 64 - 95"."""
    cpus: list[int] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        span = _CPUS.fullmatch(item)
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        if not first <= last < _MOST_CPUS or (cpus and first <= cpus[-1]):
            raise ValueError(f"{item[:40]!a} is not a range of CPUs")
        cpus += range(first, last + 1)
    return tuple(cpus) or None


def _pair(gpu: str, peer: int, node: _Node, found: FactCollector) -> None:
    """Add the path to another GPU, and the NVLinks between both."""
    a, b = sorted((int(gpu.removeprefix("gpu")), peer))
    path = next((path for text in node.texts if (path := _PATHS.get(text))), None)
    if a != b:
        found.add(GpuPair, f"gpu{a}-gpu{b}", node.where, a=f"gpu{a}", b=f"gpu{b}", path=path)
    for links in _LINKS.finditer(node.text):
        for link in re.findall("[0-9]{1,2}", links[1]):
            key = f"{gpu}/nvlink{int(link)}"
            found.add(GpuLink, key, node.where, gpu=gpu, kind="nvlink", active=True)


def _count(node: _Node, counts: dict[str, dict[int | None, tuple[float, Evidence]]]) -> None:
    quantity, link = _COUNTERS.get(node.path[1]), _LINK.fullmatch(node.path[0])
    if quantity and (link or node.path[0] == "Error Detail"):
        number = int(link[1]) if link else None
        before, where = counts.setdefault(quantity, {}).get(number, (0.0, node.where))
        value = float(node.text)
        counts[quantity][number] = before + value, node.where if value else where


def _counter_records(
    part: Part, gpu: str, counts: Mapping[str, Mapping[int | None, tuple[float, Evidence]]], found: FactCollector
) -> Iterable[Record]:
    """Counters as from live sources: one per link if it is not zero, and the sum over all links."""
    for quantity, links in counts.items():
        worst = max(links.values(), key=lambda one: one[0])
        found.add(Gpu, gpu, worst[1])
        for number, (value, where) in links.items():
            if value and number is not None:
                yield _observation(part, f"{gpu}/nvlink{number}", quantity, value, where)
        yield _observation(part, gpu, quantity, sum(value for value, _ in links.values()), worst[1])


def _observation(part: Part, about: str, quantity: str, value: float, where: Evidence) -> Observation:
    return Observation(about=about, quantity=quantity, unit="count", value=value, at=part.at, evidence=where)
