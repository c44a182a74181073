"""A cluster as a training sees it: GPUs, what each computes, and the levels that join them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from ..catalog.accelerators import Fitted, accelerator_of, accelerators, fitted_of
from ..catalog.gpus import Product, products
from ..site.schema import Machine
from .cluster_fabric import Node, Switches, domain, fat_tree
from .collective_algorithms import Ways, known_ways
from .message_times import Points
from .network_tiers import Level


class Unknown(ValueError):
    """What a plan needs and nobody has published or said, in a sentence."""


@dataclass(frozen=True)
class Cluster:
    """GPUs in nodes; all rates are rated, in bytes per second and one direction."""

    name: str
    gpu: Product
    gpus: int
    levels: tuple[Level, ...]
    ways: Ways
    switched: bool  # its nodes' switches reduce arrays
    flops: float  # dense bf16 of one GPU
    reached: float  # of them by matrix products
    source: str
    measured: Mapping[tuple[str, bool], Points] = field(default_factory=dict)  # by operation, and whether across nodes

    @property
    def inside(self) -> str:
        """The level of a node's own links."""
        return self.levels[0].name

    @property
    def memory(self) -> int:
        """Bytes of one GPU."""
        return self.gpu.memory or 0


def cluster_of(
    machine: Machine,
    nodes: int,
    switches: Switches | None = None,
    nics: tuple[int, float] | None = None,
    gpu: Product | None = None,
) -> Cluster:
    """So many nodes of a machine type; `nics` and `gpu` where they are known better than from the catalog.

    Without `switches` any half of the nodes can send to the other at full rate. Unknown, or ValueError of fat_tree:
    what is missing.
    """
    fitted = fitted_of(machine.name)
    product = gpu or _product(fitted.gpu if fitted else None, machine)
    row = accelerator_of(product.name)
    if row is None:
        raise Unknown(f"what {product.name} computes is not in the catalog; --machine names another type")
    if nodes < 1:
        raise Unknown(f"{nodes} nodes: a plan needs one at least")
    if not machine.gpus or not product.link_rate or not product.links:
        raise Unknown(f"{machine.name}: its GPUs have no links of their own, or their number is not known")
    ports = nics or (_ports(machine, fitted) if nodes > 1 else (1, 1.0))  # one node sends nothing
    node, count = _node(machine.gpus, product, fitted is not None and fitted.mesh, *ports), nodes
    if row.domain and nodes > 1:
        trays = min(nodes, row.domain // machine.gpus)
        node, count = domain(machine.gpus, node.rate, trays, *ports), -(-nodes // trays)
    return Cluster(
        name=machine.name,
        gpu=product,
        gpus=nodes * machine.gpus,
        levels=_levels(node, count, switches),
        ways=known_ways(grade_of(product)),
        switched=product.fabric and (product.link_version or 0) >= 4,
        flops=row.flops,
        reached=row.reached or row.flops * _usual_share(),
        source=f"{product.name}: {row.source}; {fitted.source if fitted else machine.source}",
    )


def _product(name: str | None, machine: Machine) -> Product:
    found = next((one for one in products() if one.name == name), None)
    if found is None:
        raise Unknown(f"{machine.name}: which GPUs it has is not in the catalog of plans; name another type of machine")
    return found


def _ports(machine: Machine, fitted: Fitted | None) -> tuple[int, float]:
    count, rate = machine.rdma, machine.rdma_rate
    if fitted and not (count and rate):
        count, rate = fitted.nics, fitted.nic_rate
    if not count or not rate:
        raise Unknown(
            f"{machine.name}: how fast its NICs are is not known; say it: --network 8x400 (NICs x Gb/s a node)"
        )
    return count, rate


def _node(gpus: int, product: Product, mesh: bool, nics: int, nic_rate: float) -> Node:
    """XGMI joins each two GPUs of a node, and so do NVLinks where there are no switches."""
    meshed = mesh or product.link_kind == "xgmi"
    return Node(gpus, product.links * (product.link_rate or 0.0), nics, nic_rate, meshed)


def _levels(node: Node, count: int, switches: Switches | None) -> tuple[Level, ...]:
    if switches is not None:
        return fat_tree(node, count, switches)
    first = Level("node", node.gpus, node.rate, node.mesh)
    return (first, Level("fabric", count, node.egress)) if count > 1 else (first,)


def grade_of(product: Product) -> str:
    """Of the links between its GPUs, as links.toml names it."""
    return f"nvlink{product.link_version}" if product.link_kind == "nvlink" else product.link_kind


@cache
def _usual_share() -> float:
    """Of what data sheets say, what matrix products reach: the median of those that were measured."""
    return statistics.median(one.reached / one.flops for one in accelerators().accelerator if one.reached)


def with_measured(cluster: Cluster, measured: Mapping[tuple[str, bool], Points]) -> Cluster:
    """The cluster whose collectives are as measured rather than as the catalog has them."""
    return replace(cluster, measured=measured)
