"""Copies between GPUs with peer access over PCIe, in measurements that show neither the links nor faster pairs.

A board with a second slot of 8 lanes, or of the generation before, is built that way. A rate that a quarter of the
lanes would give is that of a slot of the chipset, of a riser, or of a link that trained low.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ...catalog.gpus import Product, product_of
from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.pcie_rates import rated, speed_of
from ...facts.records import Flow, Observation
from ...facts.units import as_gigabytes
from ...graph.flow_paths import hops_of
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule

_PART = 4  # of the lanes
_REACHED = 0.9  # of their rated rate: more is not reached
_NEWEST = 4  # generation: many boards with cards of generation 5 have slots of generation 4
_STAGED = 2 / 3  # of the copy through host memory; diagnosis/slower_peers.py reports a lower rate
_LEAST = 4 << 20  # bytes: smaller copies do not reach the rate
_FEW = 3  # GPUs; of more, the fast pairs show which one is slow (models/bandwidth/peer_flows.py)


def is_slow(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such a pair."""
    return snapshot.origin == "dumps" and bool(_slow(snapshot))


def slow_peer_copies(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """One finding, on the slowest pair."""
    slow = _slow(snapshot)
    one, product = min(slow, key=lambda pair: pair[0].value)
    flow = one.about
    assert isinstance(flow, Flow)
    own = rated(speed_of(product.pcie), product.width)
    staged = _rates(snapshot, "host").get(replace(flow, via="host"))
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


def _slow(snapshot: Snapshot) -> list[tuple[Observation, Product]]:
    """The rates of slow pairs and the product of their GPUs. Nothing if other pairs of many GPUs are fast."""
    staged, found, fast = _rates(snapshot, "host"), list[tuple[Observation, Product]](), False
    for flow, one in _rates(snapshot, "").items():
        product = _common_product(snapshot, flow)
        if product is None or hops_of(snapshot.topology, flow):
            continue
        lanes = rated(speed_of(min(product.pcie, _NEWEST)), product.width // _PART)
        host = staged.get(replace(flow, via="host"))
        if one.value >= _REACHED * lanes:
            fast = True
        elif host is None or one.value >= _STAGED * host.value:
            found.append((one, product))
    return [] if fast and len(snapshot.of(Gpu)) > _FEW else found


def _rates(snapshot: Snapshot, via: str) -> Mapping[Flow, Observation]:
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


RULES = (Rule("bandwidth-low", Node, (), slow_peer_copies, is_slow),)
