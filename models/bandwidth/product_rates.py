"""Copies whose path is not known, compared with the complete links of the GPU product.

Who reaches this rate has these links: the slowest hop of any path is at least as fast. Who does not reach it may have a
healthy machine of an older generation, or another path, so below the rate nothing is expected.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.gpus import Product, product_of
from ..facts.gpu import Gpu
from ..facts.machine import Pci
from ..facts.pcie_rates import rated, speed_of
from ..facts.records import Flow
from ..inventory.snapshot import Snapshot
from ..report import Expectation
from .best_rates import best_observations
from .efficiency import attainable

_HOST = "host"
_ABOVE = 1.05  # times the rated rate: a sum of two directions or a rate of a cache


def by_product(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """The rate of the product's complete links, if the flow reaches it."""
    seen = best_observations(snapshot).get(flow)
    if seen is None or flow.op != "copy" or len(flow.ends) != 2 or flow.via or flow.beside:
        return
    of = [_product(snapshot, end) for end in flow.ends if end != _HOST]
    product = of[0] if of else None
    if product is None or any(other != product for other in of):
        return
    grade, able = _link(product, between=len(of) == 2)
    reached = attainable(grade, flow.op, "host" if flow.ends[1] == _HOST else "device") if grade else None
    if reached and reached.low * able <= seen.value <= _ABOVE * able:
        source = f"the complete {grade} of a {product.name} ({product.source}); {reached.source}"
        low, typical, high = (share * able for share in (reached.low, reached.typical, reached.high))
        yield Expectation(basis="capability", low=low, typical=typical, high=max(high, able), source=source)


def _product(snapshot: Snapshot, end: str) -> Product | None:
    device = snapshot.topology.find(end)
    gpu = snapshot.of(Gpu).get(device.id if device else end)
    return product_of(gpu, snapshot.of(Pci)) if gpu else None


def _link(product: Product, between: bool) -> tuple[str, float]:
    """Grade and rated rate of the links to other GPUs or to the host; an empty grade where they may be absent."""
    if not between:
        able = rated(speed_of(product.pcie), product.width)
        return ("", 0.0) if product.c2c_rate else (f"pcie{product.pcie}x{product.width}", able)
    if product.bridged or not product.links or not product.link_rate or product.link_version is None:
        return "", 0.0
    return f"{product.link_kind}{product.link_version}", product.links * product.link_rate
