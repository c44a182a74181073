"""A topology as a graph for Graphviz: `linkgauge topology --format dot | dot -Tsvg`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from ...models.facts.units import as_gigabytes
from ...models.graph.topology import FABRIC, FORWARDS, Device, Link, Topology

_SHAPES = {"gpu": "box3d", "nic": "component", "nvme": "cylinder", "disk": "cylinder", "numa": "folder"}


def as_dot(topology: Topology) -> str:
    """All devices with a link, and their links; parallel links are one edge. A link below its rated rate is red."""
    edges: dict[tuple[str, str, str], list[Link]] = defaultdict(list)
    for link in topology.links:
        if link.a != link.b:
            edges[link.a, link.b, link.kind].append(link)
    joined = {end for a, b, _ in edges for end in (a, b)}
    lines = [*(_node(one) for one in topology.devices if one.id in joined and one.id != FABRIC)]
    for (a, b, kind), links in edges.items():
        lines.append(f"  {_quoted(a)} -- {_quoted(b)} [{', '.join(_edge(kind, links))}];")
    return "\n".join(("graph linkgauge {", "  node [shape=box];", *lines, "}", ""))


def _node(device: Device) -> str:
    names = dict.fromkeys((next(iter(device.aliases), device.id), device.id, device.name))
    label = "\n".join(filter(None, names))
    shape = _SHAPES.get(device.kind) or ("ellipse" if device.kind in FORWARDS else "box")
    return f"  {_quoted(device.id)} [label={_quoted(label)}, shape={shape}];"


def _edge(kind: str, links: list[Link]) -> Iterator[str]:
    rates = [link.trained if link.trained is not None else link.rated for link in links]
    total = sum(rate for rate in rates if rate is not None)
    number = f"{len(links)} × " if len(links) > 1 else ""
    rate = f" {as_gigabytes(total)}" if None not in rates else ""
    yield f"label={_quoted(f'{number}{kind}{rate}')}"
    if any(link.trained is not None and link.rated is not None and link.trained < link.rated for link in links):
        yield "color=red"


def _quoted(text: str) -> str:
    """A quoted string: the language escapes quotes and line ends as JSON does, and keeps other characters."""
    return json.dumps(text, ensure_ascii=False)
