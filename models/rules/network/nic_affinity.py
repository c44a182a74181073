"""The distance between fabric NICs and the GPUs that use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...facts.machine import Node, Package, Pci, Port, Rdma
from ...facts.pci_classes import card_of
from ...facts.records import Evidence
from ...inventory.cohorts import product_of_function
from ...inventory.positions import empty_positions
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.machine_expectations import profile
from ..core.rule import Rule
from ..core.wording import function_name
from .port_roles import role_of
from .ports import function_of

_FEWEST = 3  # NICs that only their place shows to be fabric: both of two can be at one processor by design


def has_several_processors(snapshot: Snapshot, node: Node) -> bool:
    """Select bare-metal nodes with RDMA devices and several processors. Guests see emulated processors."""
    return (
        node.virtual is not True
        and len(snapshot.of(Package)) > 1
        and any(a.address for a in snapshot.of(Rdma).values())
    )


def remote(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A processor has GPUs and no fabric NIC, although there are at least as many NICs as processors with GPUs.

    A machine with fewer NICs than processors was built that way. Only NICs that certainly belong to the fabric count,
    whether their ports work or not. Storage and management NICs can be anywhere. If a NIC is missing, its place is not
    known, so there is no finding.
    """
    below = snapshot.topology.link_below
    gpus = _by_package(snapshot, [f for f in snapshot.functions("gpu") if f.key in below])
    functions = _fabric_cards(snapshot)
    cards = _by_package(snapshot, list(functions.values()))
    known = None not in gpus and None not in cards
    without = [package for package in gpus if package not in cards]
    few = len(gpus) < 2 or len(functions) < len(gpus) or _is_one_missing(snapshot)
    if not known or few or len(without) == len(gpus):
        return
    for package in without:
        near = max(len(cards[other]) for other in gpus if other in cards)
        names = ", ".join(_short(snapshot, gpu) for gpu in gpus[package])
        yield Finding(
            code="nic-numa-remote",
            severity="warning",
            confidence="likely",
            subject=str(package),
            message=f"{names} at {package} reach every fabric NIC across the processors' interconnect: none of "
            f"{len(functions)} is at {package}",
            expected=near,
            observed=0,
            unit="devices",
            basis=COHORT,
            expected_source=f"{len(functions)} fabric NICs, {len(gpus)} processors with GPUs",
            cause="the NICs are all in slots of the other processor",
            evidence=tuple(
                Evidence("numa", f"{function_name(snapshot, f)}: NUMA node {f.numa}") for f in functions.values()
            ),
        )


def _fabric_cards(snapshot: Snapshot) -> dict[str, Pci]:
    """A function of each fabric NIC, by card. NICs of the same product without a working driver count too."""
    roles = ((port, role_of(snapshot, port)) for port in snapshot.of(Port).values())
    ports = {port.key: role for port, role in roles if role and role.severity == "critical"}
    if len(ports) < _FEWEST and not any(role.basis in ("site", "profile") for role in ports.values()):
        return {}
    fabric = [function for key in ports if (function := function_of(snapshot, snapshot.of(Port)[key]))]
    products = {product_of_function(function) for function in fabric}
    equal = [one for one in snapshot.functions("nic") if not one.physfn and product_of_function(one) in products]
    return {card_of(function.key): function for function in (*fabric, *equal)}


def _is_one_missing(snapshot: Snapshot) -> bool:
    """Whether the node has fewer NICs than its machine type, or a switch has fewer than equal switches."""
    known = profile(snapshot)
    rdma = sum(1 for adapter in snapshot.of(Rdma).values() if adapter.address)
    short = known is not None and known.machine.rdma is not None and rdma < known.machine.rdma
    return short or any(gap.kind == "nic" for gap in empty_positions(snapshot))


def _by_package(snapshot: Snapshot, functions: list[Pci]) -> dict[str | None, list[Pci]]:
    """The functions by processor, from their NUMA node. The key None has those with an unknown processor."""
    homes = _homes(snapshot)
    found: dict[str | None, list[Pci]] = defaultdict(list)
    for function in functions:
        found[homes.get(f"numa{function.numa}")].append(function)
    return dict(found)


@once_per_snapshot
def _homes(snapshot: Snapshot) -> Mapping[str, str]:
    """The processor of each NUMA node."""
    return {link.b: link.a for link in snapshot.topology.links if link.id.startswith("package")}


def _short(snapshot: Snapshot, gpu: Pci) -> str:
    device = snapshot.topology.find(gpu.key)
    return device.aliases[0] if device and device.aliases else gpu.key


RULES = (
    Rule(
        "nic-numa-remote",
        Node,
        ("virtual", "Pci", "Pci.numa", "Rdma", "Port", "Package", "Numa"),
        remote,
        has_several_processors,
    ),
)
