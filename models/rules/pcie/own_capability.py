"""GPUs in dumps whose own PCIe capability is below that of their product.

The link then trains at the most that the GPU offers, so a comparison with its own capability finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.gpus import products_of
from ...facts.machine import Node, Pci
from ...facts.pci_classes import kind_of
from ...facts.pcie_rates import speed_of
from ...facts.units import as_transfers
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name, location


def has_product(snapshot: Snapshot, function: Pci) -> bool:
    """Select GPUs of known products in dumps of bare metal: a hypervisor can show another capability."""
    node = snapshot.of(Node).get("node")
    known = snapshot.origin == "dumps" and kind_of(function) == "gpu" and not function.lost and not function.physfn
    products = products_of(function)  # the GPU of a Grace machine has another link to its processor
    return known and bool(products) and not any(one.c2c_rate for one in products) and not (node and node.virtual)


def narrow(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The GPU offers fewer lanes than each product with its ids."""
    lanes = min(product.width for product in products_of(function))
    if function.max_width and function.max_width < lanes:
        yield _finding(snapshot, function, "max_width", function.max_width, lanes)


def slow(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The GPU offers a lower generation than each product with its ids."""
    least = speed_of(min(product.pcie for product in products_of(function)))
    if function.max_speed and function.max_speed < least:
        yield _finding(snapshot, function, "max_speed", function.max_speed, least)


def _finding(snapshot: Snapshot, function: Pci, field: str, own: float, wanted: float) -> Finding:
    name, product = function_name(snapshot, function), products_of(function)[0]
    is_width = field == "max_width"
    shown = [f"x{value:.0f}" if is_width else as_transfers(value) for value in (own, wanted)]
    return Finding(
        code="pcie-link-narrow" if is_width else "pcie-link-slow",
        severity="warning",
        confidence="likely",
        subject=function.key,
        subject_name=name,
        case="own capability",
        message=f"{name} offers no more than {shown[0]} (its link capability); its product, {product.name}, "
        f"has {shown[1]}",
        expected=wanted,
        observed=own,
        unit="lanes" if is_width else "transfers_per_second",
        basis="capability",
        expected_source=f"{product.name} ({product.source})",
        cause="the firmware of the GPU or its setting; else damaged lanes that the GPU switched off",
        location=location(function, snapshot),
        evidence=cited(function, field),
    )


RULES = (
    Rule("pcie-link-narrow", Pci, ("max_width",), narrow, has_product),
    Rule("pcie-link-slow", Pci, ("max_speed",), slow, has_product),
)
