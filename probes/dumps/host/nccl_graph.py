"""The system that NCCL and RCCL print in their logs (NCCL_DEBUG_SUBSYS=GRAPH): the PCI tree, NVLinks and networks.

Source of the format: NVIDIA/nccl src/graph/topo.cc (ncclTopoPrint), versions 2.5 to 2.30:

    === System : maxBw 48.0 totalBw 370.8 ===
    CPU/0-0 (1/1/2)
    + PCI[48.0] - PCI/0-16000 (1000c0301000a020)
                  + PCI[48.0] - GPU/0-18000 (0)
                                + NVL[370.8] - NVS/0-0
                  + PCI[48.0] - NIC/0-19000
                                + NET[50.0] - NET/0-0 (0/20a2c80003ed3fb8/1/50.0)

A number in brackets is in GB/s. That of PCI is a product of the maximum width and speed, which says neither of them, so
it is not a fact. That of NVL is the sum of the active links of a GPU (ncclTopoGetXmlFromGpu in src/graph/xml.cc reads
the state of each link). NET has only active ports (ncclIbInit in src/transport/net_ib.cc), with the trained rate. As in
a topology file, NCCL leaves out ports of bridges; the reader inserts them as nccl_topo.py does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.machine import HostBridge, Numa, Pci, Port, Rdma
from ....models.facts.pci_classes import AMD, NVIDIA, card_of
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record

_BEGIN = "=== System : "
_FROM_FILE = "NCCL_TOPO_FILE set by environment"  # then the links are those of a file, and not of the machine
_LINE = re.compile(
    r"^(?:[^\n]{0,200}?(?P<rank>\S{1,99} \[\d+\] )?NCCL INFO )?"
    r"(?P<body>[^\n]*(?:(?:(?<=\] -)|(?<=\+)) ?\n[^\n]*|\n[ \t]*\([^\n]*)?)\n",  # a line can be wrapped
    re.MULTILINE,
)
_NODE = re.compile(
    r"(?P<indent>[ \t]{0,300})(?:\+ (?P<link>[A-Z]{2,4}[0-9]?)\[ ?(?P<rate>\d{1,5}(?:\.\d{1,6})?)\] - )?"
    r"(?P<kind>CPU|PCI|GPU|NIC|NET|NVS)/(?:[0-9A-Fa-f]{1,4}-)?(?P<id>[0-9A-Fa-f]{1,16})"
    r"(?: \((?P<more>[\w./:-]{1,60})\))?[ \t]*"
)
_LINK = re.compile(r"[A-Z]{3}\[ ?[\d.]{1,12}\] - ")
_END = "=" * 20
# What can be above what. A line below anything else follows a line that is missing.
_ABOVE = {"PCI": "CPU PCI", "GPU": "CPU PCI", "NIC": "CPU PCI", "NET": "NIC"}
_BRIDGE = 0x060400
_CLASSES = {"PCI": _BRIDGE, "GPU": 0x030200, "NIC": 0x020000}
_ADDRESS = 4  # hex digits of an address, at least: bus 1, device 0, function 0
_NOWHERE = 0xFFFF  # a CPU without a NUMA node has the number -1, as 16 hex digits
# GB/s of one NVLink, as NCCL counts it (src/graph/topo.h: SM60 and SM70 to SM100, and values of older versions)
_NVLINK_RATES = (18.0, 20.0, 20.6, 21.0, 22.0, 40.1)
_MOST_LINKS, _NEAR = 18, 0.005  # a rate is a whole number of links if the remainder is below 0.5 % of a link


@dataclass(frozen=True, slots=True)
class _Node:
    """A line of the tree: a node, and the link to it from `above`."""

    kind: str
    number: int
    link: str | None
    rate: float
    more: str
    cite: Evidence
    above: _Node | None = field(repr=False)


def read(
    text: str, cite: Callable[[re.Match[str]], Evidence], gpus: Mapping[str, str], ports: Mapping[int, str]
) -> Iterator[Record]:
    """The PCI functions, links and ports of the first printed system.

    `gpus` has the key of each GPU by PCI address, and `ports` the key of each network port by NCCL's number, from other
    lines of the log.
    """
    if _BEGIN not in text:
        return
    nodes, damage = _first(text, cite)
    keys = {**_by_rank(nodes), **gpus}
    maker = AMD if "RCCL" in text else NVIDIA
    yield from _functions(nodes, maker)
    rate = _rate_of_a_link(nodes) if maker == NVIDIA and _FROM_FILE not in text else None
    for node in nodes:
        if node.kind == "GPU" and node.link == "PCI" and (key := keys.get(address(node.number))):
            yield _gpu(nodes, node, key, rate)
            yield from _nvlinks(nodes, node, key, rate)
    for node in nodes:
        if node.kind == "NET" and node.link == "NET" and node.above and node.number in ports:
            device, _, _ = ports[node.number].rpartition("/")
            yield Rdma(key=device, address=address(node.above.number), cites={"address": node.cite})
            cites = {"rate": node.cite, "state": node.cite}
            yield Port(key=ports[node.number], device=device, state="ACTIVE", rate=_port_rate(node), cites=cites)
    yield from _unequal(nodes)
    if damage:
        why = "a line of NCCL's graph is damaged or missing; what follows it was not read"
        yield NotChecked(what="dump", subject="graph", reason=Reason.INCOMPLETE, path=damage.source, detail=why)


def _unequal(nodes: list[_Node]) -> Iterator[NotChecked]:
    """GPUs whose PCIe link is rated lower than others: fewer lanes, a slower slot, or, in old versions, rest."""
    gpus = [node for node in nodes if node.kind == "GPU" and node.link == "PCI"]
    most = max((node.rate for node in gpus), default=0.0)
    for node in gpus:
        if node.rate < most:
            yield NotChecked(
                what="Pci.width",
                subject=address(node.number),
                reason=Reason.INCOMPLETE,
                path=node.cite.source,
                detail=f"NCCL rates its PCIe link at {node.rate:g} GB/s, and that of another GPU at {most:g} GB/s",
                how=f"lspci -vv -s {address(node.number)}",
            )


def _first(text: str, cite: Callable[[re.Match[str]], Evidence]) -> tuple[list[_Node], Evidence | None]:
    """The nodes of the first system, and the line at which it is damaged. What follows that line can be anywhere.

    Ranks write at the same time, so only lines of the same process belong to it.
    """
    nodes: list[_Node] = []
    stack: list[tuple[int, _Node]] = []  # indentation and node of each line above
    ranks: list[str] = []  # the processes that began, the first one first
    for line in _LINE.finditer(text):
        body, rank = re.sub(r"(?<!\s)\s*\n\s*", " ", line["body"]), line["rank"] or ""
        if body.startswith(_BEGIN):
            ranks.append(rank)
        elif not ranks or not body.strip() or rank in ranks[1:] or (rank != ranks[0] and not _LINK.search(body)):
            continue
        elif body.startswith(_END):
            return _with_processors(nodes, cite(line))
        else:
            found = _NODE.fullmatch(body)
            node = _node(found, stack, cite(line)) if found and rank == ranks[0] else None
            if node is None:
                return nodes, cite(line)
            nodes.append(node)
    if not nodes:
        return nodes, None
    if text.rstrip().endswith(_END):  # the last line has no line end
        return _with_processors(nodes, nodes[-1].cite)
    return nodes, nodes[-1].cite


def _with_processors(nodes: list[_Node], end: Evidence) -> tuple[list[_Node], Evidence | None]:
    """The nodes, unless the line of a processor to which others have links is missing: its devices seem elsewhere."""
    headed, named = (
        {node.number for node in nodes if node.kind == "CPU" and (node.link is None) == one} for one in (True, False)
    )
    return (nodes, None) if named <= headed else ([], end)


def _node(found: re.Match[str], stack: list[tuple[int, _Node]], cite: Evidence) -> _Node | None:
    """The node of a line. None: it cannot be at this place."""
    depth = len(found["indent"].expandtabs()) + 1 if found["link"] else 0
    while stack and stack[-1][0] >= depth:
        stack.pop()
    above = stack[-1][1] if stack else None
    kind, number = found["kind"], int(found["id"], 16)
    node = _Node(kind, number, found["link"], float(found["rate"] or 0), found["more"] or "", cite, above)
    stack.append((depth, node))
    if kind == "CPU":  # a processor has no link to itself: the line of the next one is missing
        at_place = (above is None) == (node.link is None) and (above is None or above.number != number)
    elif node.link in ("PCI", "NET"):
        at_place = above is not None and above.kind in _ABOVE.get(kind, "")
    else:
        at_place = above is not None and above.kind == "GPU"
    return node if at_place and (node.link != "PCI" or len(found["id"]) >= _ADDRESS) else None


def _functions(nodes: list[_Node], maker: int) -> Iterator[Record]:
    """Host bridges, and PCI functions with a port above each card."""
    known: set[str] = set()
    for node in nodes:
        place = _place(node)
        if place in known or (node.kind == "CPU" and node.link):
            continue
        if node.kind == "CPU":
            known.add(place)
            if node.number < _NOWHERE:
                yield Numa(key=f"numa{node.number}")
                yield HostBridge(key=place, numa=node.number, cites={"numa": node.cite})
            else:
                yield HostBridge(key=place)
        elif node.kind in _CLASSES and node.above and node.link == "PCI":
            port = f"{card_of(place)}/port"
            if port not in known:
                cites = {"parent": node.cite, "pci_class": node.cite}
                yield Pci(key=port, parent=_place(node.above), pci_class=_BRIDGE, cites=cites)
            known |= {place, port}
            yield _function(node, place, port, maker)


def _function(node: _Node, place: str, port: str, maker: int) -> Pci:
    """A function. NCCL prints the identity of switches alone, as 64 bits: vendor, device, and both of the subsystem."""
    vendor, device = maker if node.kind == "GPU" else None, None
    if node.kind == "PCI" and re.fullmatch(r"[0-9a-f]{12,16}", node.more):
        identity = int(node.more, 16)
        vendor, device = identity >> 48 or None, identity >> 32 & 0xFFFF or None
    cites = {"parent": node.cite, "pci_class": node.cite}
    cites |= {name: node.cite for name, value in (("vendor", vendor), ("device", device)) if value is not None}
    return Pci(key=place, parent=port, pci_class=_CLASSES[node.kind], vendor=vendor, device=device, cites=cites)


def _place(node: _Node) -> str:
    """The key of a bridge or function."""
    if node.kind == "CPU":
        return f"numa{node.number}/pci" if node.number < _NOWHERE else "pci"
    return address(node.number)


def address(bus: int) -> str:
    """The PCI address from NCCL's form without separators: 1b000 is 0000:1b:00.0."""
    return f"{bus >> 20:04x}:{bus >> 12 & 0xFF:02x}:{bus >> 4 & 0xFF:02x}.{bus & 7}"


def _by_rank(nodes: list[_Node]) -> dict[str, str]:
    """The keys of the GPUs, if they are all GPUs of a job with one rank for each, in the order of their addresses."""
    gpus = [(node.number, node.more) for node in nodes if node.kind == "GPU" and node.link == "PCI"]
    ranks = [int(rank) for _, rank in sorted(gpus) if rank.isdecimal()]
    first = min(ranks, default=0)
    if len(ranks) < 2 or len(ranks) != len(gpus) or first % len(ranks) or ranks != [*range(first, first + len(ranks))]:
        return {}
    return {address(number): f"gpu{index}" for index, (number, _) in enumerate(sorted(gpus))}


def _port_rate(node: _Node) -> float | None:
    """Bytes per second. The line says the rate twice, so a damaged one is noticed."""
    _, _, again = node.more.rpartition("/")
    return node.rate * 1e9 or None if again == f"{node.rate:.6f}" or again == f"{node.rate:.1f}" else None


def _rate_of_a_link(nodes: list[_Node]) -> float | None:
    """GB/s of one NVLink: the only known rate of which the rates of all GPUs are whole multiples."""
    totals = [node.rate for node in nodes if node.link == "NVL"]
    rates = [one for one in _NVLINK_RATES if all(_links(total, one) for total in totals)]
    return rates[0] if len(rates) == 1 else None


def _gpu(nodes: list[_Node], node: _Node, key: str, rate: float | None) -> Gpu:
    """A GPU. The links to switches have one line, so none is missing; the links to other GPUs have a line for each."""
    lines = [line for line in nodes if line.above is node and line.link == "NVL"]
    cites = {"address": node.cite}
    if rate is None or [line.kind for line in lines] != ["NVS"]:
        return Gpu(key=key, address=address(node.number), cites=cites)
    cites["nvlinks"] = lines[0].cite
    return Gpu(key=key, address=address(node.number), nvlinks=_links(lines[0].rate, rate), cites=cites)


def _nvlinks(nodes: list[_Node], gpu: _Node, key: str, rate: float | None) -> Iterator[GpuLink]:
    """The active NVLinks of a GPU to other GPUs."""
    number = 0
    for line in nodes:
        if rate is None or line.above is not gpu or (line.link, line.kind) != ("NVL", "GPU"):
            continue
        for _ in range(_links(line.rate, rate)):
            yield GpuLink(
                key=f"{key}/nvlink{number}",
                gpu=key,
                kind="nvlink",
                active=True,
                remote=address(line.number),
                remote_kind="gpu",
                cites={"active": line.cite, "remote": line.cite},
            )
            number += 1


def _links(total: float, rate: float) -> int:
    """The number of links of `rate` in `total`; 0 if it is none or no whole number."""
    number = round(total / rate)
    return number if number <= _MOST_LINKS and abs(total / rate - number) < _NEAR else 0
