"""A cluster for the training model: GPUs, their compute rate, and the network levels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct, field
from msgspec.structs import replace

from ..bandwidth.collective_algorithms import Algorithms, known_algorithms
from ..bandwidth.message_times import Points
from ..bandwidth.network_tiers import Level
from ..catalog.accelerators import Accelerator, Fitted, accelerator_of, accelerators, fitted_of
from ..catalog.gpus import Product, products
from ..facts.averages import median
from ..facts.pcie_rates import rated, speed_of
from ..site.schema import Machine
from .cluster_fabric import Node, Switches, domain, fat_tree

_MESHED = ("xgmi", "roce")  # grades whose links connect each two GPUs


class UnknownValue(ValueError):
    """A value that the plan needs and that is not known. Carries a sentence for the user."""


class Cluster(Struct, frozen=True, dict=True):
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
    low: Mapping[str, float] = field(default_factory=dict)  # dense FLOP per second of one GPU in fp8 and fp4
    node_gpus: int = 0  # of one machine; an NVLink domain has several machines
    bus_bandwidth: Mapping[str, tuple[float, float, float]] = field(
        default_factory=dict
    )  # of one machine, long messages
    found: str = ""  # what of the machine type this node has otherwise
    measured: Mapping[tuple[str, bool], Points] = field(default_factory=dict)  # by operation, and whether between nodes

    @property
    def inside(self) -> str:
        """The name of the level inside a node."""
        return self.levels[0].name

    def peak(self, precision: str) -> float:
        """Dense FLOP per second of one GPU. KeyError: it has no such products."""
        return self.flops if precision == "bf16" else self.low[precision]

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

    Without `switches` the fabric has full bisection bandwidth. Raises UnknownValue for a missing value, and
    ValueError of fat_tree.
    """
    fitted = fitted_of(machine.name)
    product = gpu or _product(fitted.gpu if fitted else None, machine)
    row = _compute_rates(product)
    if nodes < 1:
        raise UnknownValue(f"{nodes} nodes: at least one node is required")
    gpus = machine.gpus or (fitted.gpus if fitted else None)
    if not gpus:
        raise UnknownValue(f"{machine.name}: its number of GPUs is not known; describe it in the site file")
    rate, grade = _between(machine, product)
    ports = nics or (_ports(machine, fitted) if nodes > 1 else (1, 1.0))  # a single node needs no NICs
    trays = min(nodes, row.domain // gpus) if row.domain else 1  # of an NVLink domain
    wired = Node(gpus, rate, *ports, bool(fitted and fitted.mesh) or grade in _MESHED, bool(fitted and fitted.cube))
    node = domain(gpus, rate, trays, *ports) if trays > 1 else wired
    return Cluster(
        name=machine.name,
        gpu=replace(product, memory=product.memory or row.memory),
        gpus=nodes * gpus,
        levels=_levels(node, -(-nodes // trays), switches),
        algorithms=known_algorithms(grade, machine.name),
        switched=product.fabric and (product.link_version or 0) >= 4,
        flops=row.flops,
        reached=row.reached or row.flops * _usual_share(),
        low=row.low,
        source=f"{product.name}: {row.source}; {fitted.source if fitted else machine.source}",
        node_gpus=gpus,
        bus_bandwidth=machine.bus_bandwidth,
    )


def _product(name: str | None, machine: Machine) -> Product:
    found = next((one for one in products() if one.name == name), None)
    if found is None:
        raise UnknownValue(
            f"{machine.name}: has various GPUs; read such a node (--from CAPTURE), or choose another type"
        )
    return found


def _compute_rates(product: Product) -> Accelerator:
    row = accelerator_of(product.name)
    if row is None:
        raise UnknownValue(
            f"the compute rate of {product.name} is not in the catalog; choose another type with --machine"
        )
    return row


def _ports(machine: Machine, fitted: Fitted | None) -> tuple[int, float]:
    count, rate = machine.rdma, machine.rdma_rate
    if fitted and not (count and rate):
        count, rate = fitted.nics, fitted.nic_rate
    if not count or not rate:
        raise UnknownValue(
            f"{machine.name}: the rate of its NICs is not known; give it as --network 8x400 (NICs x Gb/s per node)"
        )
    return count, rate


def _between(machine: Machine, product: Product) -> tuple[float, str]:
    """The rate of one GPU to the others of its node, and its grade. Without NVLink or xGMI between all GPUs it is PCIe:
    bridges connect pairs.
    """
    pair = machine.gpus == 2 and machine.links
    if product.links and product.link_rate and (pair or not product.bridged):
        return product.links * product.link_rate, grade_of(product)
    path = machine.gpu_path or machine.gpu_link or f"pcie{product.pcie}x{product.width}"
    generation, lanes = path.removeprefix("pcie").split("x")
    return rated(speed_of(int(generation)), int(lanes)), f"pcie{generation}"


def _levels(node: Node, count: int, switches: Switches | None) -> tuple[Level, ...]:
    if switches is not None:
        return fat_tree(node, count, switches)
    first = Level("node", node.gpus, node.rate, node.mesh, node.cube)
    return (first, Level("fabric", count, node.egress)) if count > 1 else (first,)


def grade_of(product: Product) -> str:
    """The grade of the links between its GPUs, as in links.toml."""
    return f"nvlink{product.link_version}" if product.link_kind == "nvlink" else product.link_kind


@cache
def _usual_share() -> float:
    """The median share of the data sheet's compute rate that measured matrix products reach."""
    return median(one.reached / one.flops for one in accelerators().accelerator if one.reached)


def with_measured(cluster: Cluster, measured: Mapping[tuple[str, bool], Points]) -> Cluster:
    """The cluster with measured collectives instead of those of the catalog."""
    return replace(cluster, measured=measured)
