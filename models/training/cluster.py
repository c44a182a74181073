"""A cluster for the training model: GPUs, their compute rate, and the network levels."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from ..catalog.accelerators import Fitted, accelerator_of, accelerators, fitted_of
from ..catalog.gpus import Product, products
from ..site.schema import Machine
from .cluster_fabric import Node, Switches, domain, fat_tree
from .collective_algorithms import Algorithms, known_algorithms
from .message_times import Points
from .network_tiers import Level


class Unknown(ValueError):
    """A value that the plan needs and that is not known. Carries a sentence for the user."""


@dataclass(frozen=True)
class Cluster:
    """GPUs in nodes. All rates are rated, in bytes per second and one direction."""

    name: str
    gpu: Product
    gpus: int
    levels: tuple[Level, ...]
    algorithms: Algorithms
    switched: bool  # its switches inside a node reduce arrays
    flops: float  # dense bf16 of one GPU, FLOP per second
    reached: float  # part of `flops` that matrix products reach
    source: str
    measured: Mapping[tuple[str, bool], Points] = field(default_factory=dict)  # by operation, and whether between nodes

    @property
    def inside(self) -> str:
        """The name of the level inside a node."""
        return self.levels[0].name

    @property
    def memory(self) -> int:
        """Memory of one GPU in bytes."""
        return self.gpu.memory or 0


def cluster_of(
    machine: Machine,
    nodes: int,
    switches: Switches | None = None,
    nics: tuple[int, float] | None = None,
    gpu: Product | None = None,
) -> Cluster:
    """A cluster of `nodes` nodes of a machine type. `nics` and `gpu` replace the values of the catalog.

    Without `switches` the fabric has full bisection bandwidth. Raises Unknown for a missing value, and ValueError of
    fat_tree.
    """
    fitted = fitted_of(machine.name)
    product = gpu or _product(fitted.gpu if fitted else None, machine)
    row = accelerator_of(product.name)
    if row is None:
        raise Unknown(f"the compute rate of {product.name} is not in the catalog; choose another type with --machine")
    if nodes < 1:
        raise Unknown(f"{nodes} nodes: at least one node is required")
    if not machine.gpus or not product.link_rate or not product.links:
        raise Unknown(f"{machine.name}: its number of GPUs is not known, or they have no NVLink or xGMI")
    ports = nics or (_ports(machine, fitted) if nodes > 1 else (1, 1.0))  # a single node needs no NICs
    node, count = _node(machine.gpus, product, fitted is not None and fitted.mesh, *ports), nodes
    if row.domain and nodes > 1:
        trays = min(nodes, row.domain // machine.gpus)
        node, count = domain(machine.gpus, node.rate, trays, *ports), -(-nodes // trays)
    return Cluster(
        name=machine.name,
        gpu=product,
        gpus=nodes * machine.gpus,
        levels=_levels(node, count, switches),
        algorithms=known_algorithms(grade_of(product)),
        switched=product.fabric and (product.link_version or 0) >= 4,
        flops=row.flops,
        reached=row.reached or row.flops * _usual_share(),
        source=f"{product.name}: {row.source}; {fitted.source if fitted else machine.source}",
    )


def _product(name: str | None, machine: Machine) -> Product:
    found = next((one for one in products() if one.name == name), None)
    if found is None:
        raise Unknown(f"{machine.name}: its GPUs are not in the catalog; choose another machine type")
    return found


def _ports(machine: Machine, fitted: Fitted | None) -> tuple[int, float]:
    count, rate = machine.rdma, machine.rdma_rate
    if fitted and not (count and rate):
        count, rate = fitted.nics, fitted.nic_rate
    if not count or not rate:
        raise Unknown(
            f"{machine.name}: the rate of its NICs is not known; give it as --network 8x400 (NICs x Gb/s per node)"
        )
    return count, rate


def _node(gpus: int, product: Product, mesh: bool, nics: int, nic_rate: float) -> Node:
    """The links of xGMI connect each two GPUs of a node directly, as do NVLinks without switches."""
    meshed = mesh or product.link_kind == "xgmi"
    return Node(gpus, product.links * (product.link_rate or 0.0), nics, nic_rate, meshed)


def _levels(node: Node, count: int, switches: Switches | None) -> tuple[Level, ...]:
    if switches is not None:
        return fat_tree(node, count, switches)
    first = Level("node", node.gpus, node.rate, node.mesh)
    return (first, Level("fabric", count, node.egress)) if count > 1 else (first,)


def grade_of(product: Product) -> str:
    """The grade of the links between its GPUs, as in links.toml."""
    return f"nvlink{product.link_version}" if product.link_kind == "nvlink" else product.link_kind


@cache
def _usual_share() -> float:
    """The median share of the data sheet's compute rate that measured matrix products reach."""
    return statistics.median(one.reached / one.flops for one in accelerators().accelerator if one.reached)


def with_measured(cluster: Cluster, measured: Mapping[tuple[str, bool], Points]) -> Cluster:
    """The cluster with measured collectives instead of those of the catalog."""
    return replace(cluster, measured=measured)
