"""Copies of few GPUs, in measurements that show neither the links nor enough equal copies.

A card can be in a slot with half of its lanes or of an older generation. So only a small part of the rate of its own
link, or of the rate of another card, is a finding. Of a card that is not known, a rate that one lane gives: cards have
four lanes and more.

Between two GPUs with peer access, a rate that a quarter of the lanes would give is that of a slot of the chipset, of a
riser, or of a link that trained low. Half of the lanes, or the generation before, is how many boards are built. So are
both at once for the first products of generation 4, which many put on boards of generation 3 that give two cards eight
lanes each (6 to 6.9 GB/s, nearly what four lanes of generation 4 give). Boards of generation 3 are older than the
products after these, so for those the same rate is a finding.

If a card has about half the rate of another card, nothing tells whether its slot or its link is the reason: a gap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ...catalog.gpus import Product, product_of
from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.pcie_rates import rated, speed_of
from ...facts.reason import Reason
from ...facts.records import Flow, NotChecked, Observation
from ...facts.units import as_gigabytes
from ...graph.flow_paths import hops_of, is_of_host
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule
from ..core.wording import gap

_OWN = 0.2  # of the card's link: three generations less, or an eighth of the lanes and more
_OTHER = 1 / 3  # of another card of the node
_HALF = 0.6  # of another card: half of its lanes, or a generation less
_FEW = 3  # cards; more form a cohort (models/bandwidth/peer_flows.py)
_FASTEST = rated(
    speed_of(6), 16
)  # of PCIe; a faster copy is over another kind of link, or inside a GPU: a damaged text
_LEAST = 4 << 20  # bytes: smaller copies do not reach the rate
_LANES_OF, _REACHED = 4, 0.9  # a part of the lanes of a pair, and the share of their rated rate that is reached
_EIGHT_OLDER = 0.7  # the share that eight lanes of the generation before surely reach
_AFTER_AMPERE = "10de:26"  # NVIDIA's ids are in the order of their chips
_NEWEST = 4  # generation: many boards with cards of generation 5 have slots of generation 4
_STAGED = 2 / 3  # of the copy through host memory; diagnosis/slower_peers.py reports a lower rate
_ONE_LANE, _FOUR_LANES = 1.2e9, rated(speed_of(3), 4)  # of generation 3 and before


def far_below(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with a finding. Without one the rates are not checked: a rate of a half can still be a fault."""
    return snapshot.origin == "dumps" and any(few_copies(snapshot, node))


def few_copies(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A finding for each GPU whose copies are far too slow."""
    rates = _rates(snapshot)
    best = {way: max(several.values(), key=lambda one: one.value) for way, several in rates.items()}
    slow: dict[str, tuple[Observation, float, str]] = {}
    for way, several in rates.items():
        for gpu, one in several.items():
            expected, source = _expected(snapshot, gpu, one, best[way] if len(several) <= _FEW else one)
            if expected and (gpu not in slow or one.value / expected < slow[gpu][0].value / slow[gpu][1]):
                slow[gpu] = one, expected, source
    yield from (_finding(gpu, *found) for gpu, found in slow.items())


def _rates(snapshot: Snapshot) -> Mapping[str, Mapping[str, Observation]]:
    """The rates of copies from and to host memory, by way and by GPU. Copies over known links have expectations."""
    found: dict[str, dict[str, Observation]] = defaultdict(dict)
    for flow, several in snapshot.observed.items():
        rates = [one for one in several if one.quantity == "rate"]
        if isinstance(flow, Flow) and rates and _is_copy(flow) and not hops_of(snapshot.topology, flow):
            gpu = next(end for end in flow.ends if end.startswith("gpu"))
            way = found["to" if flow.ends[0] == gpu else "from"]
            way[gpu] = max((*rates, *([way[gpu]] if gpu in way else ())), key=lambda one: one.value)
    return found


def _is_copy(flow: Flow) -> bool:
    with_gpu = is_of_host(flow) and any(end.startswith("gpu") for end in flow.ends)
    return with_gpu and (flow.size is None or flow.size >= _LEAST)


def _expected(snapshot: Snapshot, gpu: str, one: Observation, best: Observation) -> tuple[float, str]:
    """The rate of which the copy reaches only a small part, and its source. 0: it does not."""
    known = snapshot.of(Gpu).get(gpu)
    product = product_of(known, {}) if known else None
    own = product.pcie_rate if product and not product.c2c_rate else 0.0
    comparable = best.value <= _FASTEST or bool(product and product.c2c_rate)
    if comparable and one.value < _OTHER * best.value and _are_alike(snapshot, gpu, best):
        return best.value, f"the fastest such copy of this node ({best.evidence.source})"
    if product and one.value < _OWN * own:
        return own, f"{product.name} has a PCIe {product.pcie} x{product.width} link ({product.source})"
    if product is None and one.value < _ONE_LANE:
        return _FOUR_LANES, "four lanes of PCIe 3, and a GPU has four or more"
    return 0.0, ""


def _are_alike(snapshot: Snapshot, gpu: str, best: Observation) -> bool:
    """Whether the GPU of the best copy can be the same product: cards of two products are in different slots."""
    ends = best.about.ends if isinstance(best.about, Flow) else ()
    known = (snapshot.of(Gpu).get(end) for end in (gpu, *ends))
    return len({one.name for one in known if one and one.name}) <= 1


def _finding(gpu: str, one: Observation, expected: float, source: str) -> Finding:
    subject = one.about.subject if isinstance(one.about, Flow) else gpu
    return Finding(
        code="bandwidth-low",
        kind="measurement",
        severity="warning",
        confidence="possible",
        subject=subject,
        message=f"copy {subject} reaches {as_gigabytes(one.value)}, {one.value / expected:.0%} of "
        f"{as_gigabytes(expected)}: {source}",
        expected=expected,
        observed=one.value,
        unit="bytes_per_second",
        basis=COHORT if "fastest" in source else "capability",
        expected_source=source,
        cause="the GPU is in a slot or on a riser with few lanes or of an old generation, or its link trained down; or "
        "the memory is at another processor",
        evidence=(one.evidence,),
        remedy="Read the link under load: nvidia-smi -q, or lspci -vv (LnkSta) of the GPU and of the ports above it.",
    )


def has_slow_pair(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such a pair."""
    return snapshot.origin == "dumps" and bool(_slow_pairs(snapshot))


def slow_peer_copies(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """One finding, on the slowest pair."""
    slow = _slow_pairs(snapshot)
    one, product = min(slow, key=lambda pair: pair[0].value)
    flow = one.about
    assert isinstance(flow, Flow)
    own = product.pcie_rate
    staged = _peer_rates(snapshot, "host").get(replace(flow, via="host"))
    yield Finding(
        code="bandwidth-low",
        kind="measurement",
        severity="warning",
        confidence="possible",
        subject=flow.subject,
        message=f"copy {flow.subject} reaches {as_gigabytes(one.value)} with peer access"
        + (f" and {as_gigabytes(staged.value)} through host memory" if staged else "")
        + f", {one.value / own:.0%} of {as_gigabytes(own)}: {product.name} has a PCIe {product.pcie} "
        f"x{product.width} link",
        expected=own,
        observed=one.value,
        unit="bytes_per_second",
        basis="capability",
        expected_source=product.source,
        cause="a GPU is in a slot with few lanes, in one of the chipset or on a riser, or its link trained down",
        evidence=(one.evidence, *((staged.evidence,) if staged else ())),
        remedy="Read the links under load: nvidia-smi -q, or lspci -vv (LnkSta) of each GPU and of the ports above it. "
        "Then move the card to a slot of the processor.",
    )


def _slow_pairs(snapshot: Snapshot) -> list[tuple[Observation, Product]]:
    """The rates of slow pairs and the product of their GPUs. Nothing if other pairs of many GPUs are fast."""
    staged, found, fast = _peer_rates(snapshot, "host"), list[tuple[Observation, Product]](), False
    for flow, one in _peer_rates(snapshot, "").items():
        product = _common_product(snapshot, flow)
        if product is None or hops_of(snapshot.topology, flow):
            continue
        lanes = rated(speed_of(min(product.pcie, _NEWEST)), product.width // _LANES_OF)
        host = staged.get(replace(flow, via="host"))
        if one.value >= (_EIGHT_OLDER if _is_first(product) else _REACHED) * lanes:
            fast = True
        elif host is None or one.value >= _STAGED * host.value:
            found.append((one, product))
    return [] if fast and len(snapshot.of(Gpu)) > _FEW else found


def _is_first(product: Product) -> bool:
    """Whether the product is of the time in which boards of generation 3 were sold, and itself of generation 4."""
    return product.pcie == _NEWEST and min(product.ids, default="") < _AFTER_AMPERE


def _peer_rates(snapshot: Snapshot, via: str) -> Mapping[Flow, Observation]:
    """The best rate of each copy between two GPUs, without other traffic."""
    found = dict[Flow, Observation]()
    for flow, several in snapshot.observed.items():
        rates = [one for one in several if one.quantity == "rate" and one.value]
        if isinstance(flow, Flow) and rates and flow.op == "copy" and flow.via == via and not flow.beside:
            between = len(flow.ends) == 2 and all(end.startswith("gpu") for end in flow.ends)
            if between and (flow.size is None or flow.size >= _LEAST):
                found[flow] = max(rates, key=lambda one: one.value)
    return found


def _common_product(snapshot: Snapshot, flow: Flow) -> Product | None:
    """The product of both GPUs. None: not known, of two products, or NVLinks of its board join the GPUs."""
    gpus = [snapshot.of(Gpu).get(end) for end in flow.ends]
    products = {product_of(gpu, {}) if gpu else None for gpu in gpus}
    product = next(iter(products))
    return product if len(products) == 1 and product and (product.bridged or not product.links) else None


def has_half(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps in which a card has about half the rate of another one, and no card has far less."""
    return snapshot.origin == "dumps" and bool(_half(snapshot)) and not any(few_copies(snapshot, node))


def half_of_another(snapshot: Snapshot, node: Node) -> Iterator[NotChecked]:
    """A gap with both rates. The cards can be of two products, or in slots that differ."""
    slow, fast = _half(snapshot)[0]
    ends = [one.about.subject for one in (slow, fast) if isinstance(one.about, Flow)]
    why = f"copy {ends[0]} reaches {as_gigabytes(slow.value)}, {ends[1]} {as_gigabytes(fast.value)}: a slot with fewer "
    why += "lanes and a link that trained low look alike"
    how = "nvidia-smi -q, or lspci -vv (LnkCap, LnkSta) of both GPUs and of the ports above them, under load"
    yield from gap(snapshot, "rate of copies", "node", Reason.INCOMPLETE, why, how)


def _half(snapshot: Snapshot) -> list[tuple[Observation, Observation]]:
    """The slowest copy of a few cards and the fastest, in each direction in which they differ so much."""
    found = list[tuple[Observation, Observation]]()
    for several in _rates(snapshot).values():
        slow, fast = (pick(several.values(), key=lambda one: one.value) for pick in (min, max))
        if 1 < len(several) <= _FEW and slow.value < _HALF * fast.value and fast.value <= _FASTEST:
            found.append((slow, fast))
    return found


RULES = (
    Rule("bandwidth-low", Node, (), few_copies, far_below),
    Rule("bandwidth-low", Node, (), half_of_another, has_half),
    Rule("bandwidth-low", Node, (), slow_peer_copies, has_slow_pair),
)
