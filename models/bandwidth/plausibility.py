"""Implausible rates: above the rate of the links on the path, or reads of disk blocks that contain only zeros.

Such a rate is the sum of both directions, or its bytes came from a cache. Collectives are not checked: a switch that
reduces (NVLink SHARP) lifts the bus bandwidth above the link rate. Flows with too little knowledge of their path are
not checked either. An exception is a copy between the host and a card: its link is PCIe.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ..catalog.gpus import product_of
from ..facts.gpu import Gpu
from ..facts.machine import Node, Pci
from ..facts.pcie_rates import rated as pcie_rated
from ..facts.pcie_rates import speed_of
from ..facts.records import COLLECTIVES, EGRESS, Flow, Observation
from ..facts.units import BytesPerSecond, as_gigabytes
from ..graph.fair_share import Share, fill
from ..graph.flow_paths import hops_of, is_of_host, sub_flows
from ..graph.routes import rated
from ..graph.topology import Hop
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import Finding

# The best published rates are below the rated rate: 0.88 of PCIe, 0.94 of NVLink, 0.98 of ports, 0.92 of memory
# (links.toml). Data sheets round by less than this factor.
_ABOVE = 1.05
_BOTH = 2.1  # times the rated rate: the largest sum of both directions
_ZEROS = 0.05  # share of disk blocks; real data has almost no blocks of zeros
_MOST_EVIDENCE = 6
_NEWEST, _LANES = 6, 16  # of PCIe links of cards
_CARD = r"(?i)\b(?:geforce|[rg]tx|quadro|titan|tesla|radeon|arc)\b"  # series of cards
_BETWEEN = frozenset({"nvlink", "xgmi"})
_AWAY = ("pcie", "host", "net")  # media on which a copy between GPUs uses no NVLink


class Implausible(Struct, frozen=True):
    """An observed rate, and the hop with a lower rate, or the observation of blocks of zeros."""

    observation: Observation
    flow: Flow
    limit: Share | None = None
    zeros: Observation | None = None


@once_per_snapshot
def implausible(snapshot: Snapshot) -> Sequence[Implausible]:
    """All implausible rates of a snapshot."""
    return tuple(_implausible(snapshot))


def _implausible(snapshot: Snapshot) -> Iterator[Implausible]:
    for flow, several in snapshot.observed.items():
        rates = [one for one in several if one.quantity == "rate"]
        if isinstance(flow, Flow):
            empty = {one.at: one for one in several if one.quantity == "zeros" and one.value > _ZEROS}
            yield from (Implausible(one, flow, zeros=empty[one.at]) for one in rates if one.at in empty)
        if (
            not rates
            or not isinstance(flow, Flow)
            or flow.op in (*COLLECTIVES, EGRESS)
            or not _is_known(snapshot, flow)
        ):
            continue
        limit = fill({flow: sub_flows(snapshot.topology, flow)}, _sure).get(flow)
        yield from (Implausible(one, flow, limit) for one in rates if limit and one.value > _ABOVE * limit.rate)


def _sure(hop: Hop) -> float:
    """The maximum rate of a hop. Infinite between sockets: the catalog has only the smallest rate of all boards."""
    return float("inf") if hop.links[0].kind == "interconnect" else rated(hop)


def _is_known(snapshot: Snapshot, flow: Flow) -> bool:
    """Whether the path is certainly the path of the bytes, and all its links are known."""
    kinds = {link.kind for hop in hops_of(snapshot.topology, flow) for link in hop.links}
    node = snapshot.of(Node).get("node")
    if "pcie" in kinds and node and node.virtual:
        return False  # the hypervisor's PCI tree is not the real one
    ends = {device.id for end in flow.ends if (device := snapshot.topology.find(end)) and device.kind == "gpu"}
    gpus = [gpu for end in ends if (gpu := _gpus(snapshot).get(end))]
    return len(gpus) == len(ends) and all(_is_whole(snapshot, gpu, flow, kinds, len(ends) > 1) for gpu in gpus)


@once_per_snapshot
def _gpus(snapshot: Snapshot) -> Mapping[str, Gpu]:
    """The GPUs that drivers report, by their names in the topology."""
    return {name: gpu for gpu in snapshot.of(Gpu).values() for name in (gpu.key, gpu.address) if name}


def _is_whole(snapshot: Snapshot, gpu: Gpu, flow: Flow, kinds: set[str], pair: bool) -> bool:
    """Whether the topology has every link between the GPU and the other end that may be faster."""
    product = product_of(gpu, snapshot.of(Pci))
    if product is None:
        return len(flow.ends) == 1
    if kinds & _BETWEEN:
        return _joining(snapshot)[gpu.key] + _joining(snapshot)[gpu.address or ""] >= product.links
    if "pcie" not in kinds:
        return True
    if pair:
        return flow.via in _AWAY or gpu.nvlinks == 0 or not product.links
    # Other products may have a direct link to the processor
    return not product.c2c_rate and product.link_kind == "nvlink"


@once_per_snapshot
def _joining(snapshot: Snapshot) -> Counter[str]:
    """The number of GPU-to-GPU links at each device."""
    links = [link for link in snapshot.topology.links if link.kind in _BETWEEN]
    return Counter(end for link in links for end in (link.a, link.b))


def invalid(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding per kind of implausible rate."""
    kinds: Mapping[object, list[tuple[Implausible, Share]]] = defaultdict(list)
    for one in implausible(snapshot):
        if one.zeros:
            yield _zeros_finding(one.flow, one.observation, one.zeros)
        elif one.limit:
            kinds[one.flow.op, one.flow.size, one.flow.via, len(one.flow.beside)].append((one, one.limit))
    yield from _of_one_rank(snapshot)
    yield from _beyond_cards(snapshot)
    for several in kinds.values():
        worst, limit = max(several, key=lambda pair: pair[0].observation.value / pair[1].rate)
        flow, rate = worst.flow, worst.observation.value
        tightest = "+".join(link.id for link in limit.bottleneck.links[:3])
        more = f", and {len(several) - 1} more numbers like it" if len(several) > 1 else ""
        yield Finding(
            code="measurement-invalid",
            severity="info",
            confidence="likely",
            subject=flow.subject,
            fact=f"{flow.op} reports {as_gigabytes(rate)}, its path carries at most {as_gigabytes(limit.rate)}",
            message=f"{flow.op} {flow.subject} reports {as_gigabytes(rate)}, but the links of its path carry at most "
            f"{as_gigabytes(limit.rate)}{more}: not judged",
            expected=limit.rate,
            observed=rate,
            unit="bytes_per_second",
            basis="capability",
            expected_source=f"what both ends of {tightest} can do",
            cause=_cause(flow, rate / limit.rate),
            evidence=tuple(one.observation.evidence for one, _ in several[:_MOST_EVIDENCE]),
        )


def _beyond_cards(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for copies between host and cards whose links the text does not show: faster than such a link."""
    found: list[tuple[float, BytesPerSecond, Observation]] = []
    for flow, several in snapshot.observed.items():
        if isinstance(flow, Flow) and (limit := _of_card(snapshot, flow)) and not hops_of(snapshot.topology, flow):
            above = (one for one in several if one.quantity == "rate" and one.value > _ABOVE * limit)
            found += ((one.value / limit, limit, one) for one in above)
    if found:
        _, limit, worst = max(found, key=lambda one: one[0])
        subject = worst.about.subject if isinstance(worst.about, Flow) else "node"
        yield Finding(
            code="measurement-invalid",
            severity="info",
            confidence="likely",
            subject=subject,
            fact=f"a copy reports {as_gigabytes(worst.value)}, the link of the card carries {as_gigabytes(limit)}",
            message=f"copy {subject} reports {as_gigabytes(worst.value)}, but the link of such a card carries at most "
            f"{as_gigabytes(limit)}: not judged",
            expected=limit,
            observed=worst.value,
            unit="bytes_per_second",
            basis="capability",
            expected_source="the fastest PCIe link of such a card",
            cause="probably the sum of both directions"
            if worst.value <= _BOTH * limit
            else "the copy stayed in a cache or inside the GPU, or the clock stopped before the copy had ended",
            evidence=tuple(one.evidence for _, _, one in found[:_MOST_EVIDENCE]),
        )


def _of_card(snapshot: Snapshot, flow: Flow) -> BytesPerSecond | None:
    """The rate of the link between host and GPU, for products that certainly have no other link than PCIe."""
    gpu = next((gpu for end in flow.ends if (gpu := _gpus(snapshot).get(end))), None)
    if gpu is None or not is_of_host(flow):
        return None
    product = product_of(gpu, snapshot.of(Pci))
    if product and (product.c2c_rate or product.link_kind != "nvlink" or "SXM2" in product.name):
        return None  # POWER processors have NVLinks to SXM2
    if product:
        return product.pcie_rate
    return pcie_rated(speed_of(_NEWEST), _LANES) if re.search(_CARD, gpu.name or "") else None


def _of_one_rank(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for a test of collectives in which each bus bandwidth is 0: one rank sends nothing."""
    of = [one for flow, several in snapshot.observed.items() for one in several if _is_collective(flow, one)]
    if of and not any(one.value for one in of):
        last = of[-1]
        yield Finding(
            code="measurement-invalid",
            severity="info",
            confidence="likely",
            subject=last.about.subject if isinstance(last.about, Flow) else "node",
            fact="a test of collectives gave a bus bandwidth of 0",
            message="each bus bandwidth of the test is 0: one rank sends nothing over links, so the test says nothing "
            "about them",
            observed=0,
            unit="bytes_per_second",
            cause="the test ran with one GPU per communicator: start it with all GPUs",
            evidence=(last.evidence,),
        )


def _is_collective(flow: object, one: Observation) -> bool:
    return isinstance(flow, Flow) and one.quantity == "bus_bandwidth"


def _zeros_finding(flow: Flow, observation: Observation, zeros: Observation) -> Finding:
    return Finding(
        code="measurement-invalid",
        severity="info",
        subject=flow.subject,
        fact=f"{flow.op} gave {as_gigabytes(observation.value)}, and {zeros.value:.0%} of the blocks were zeros",
        message=f"{flow.op} {flow.subject} gave {as_gigabytes(observation.value)}, and {zeros.value:.0%} of the "
        "blocks were nothing but zeros: not judged",
        expected=0,
        observed=zeros.value,
        unit=zeros.unit,
        cause="blocks that were trimmed or never written are answered without being read",
        evidence=(zeros.evidence, observation.evidence),
    )


def _cause(flow: Flow, times: float) -> str:
    cached = "bytes that came from a cache, or links that are others than was read"
    if len(flow.ends) > 1 and flow.op not in ("read", "stream-copy", "triad") and times <= _BOTH:
        return "probably the sum of both directions; else links that are others than was read"
    return f"probably {cached}"
