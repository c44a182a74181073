"""The cluster that the options of `linkgauge plan` and `linkgauge collective` describe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ....models.catalog import machines
from ....models.catalog.gpus import Product, product_of
from ....models.facts.gpu import Gpu
from ....models.facts.machine import Pci
from ....models.site.schema import Machine
from ....models.training.cluster import Cluster, cluster_of, with_measured
from ....models.training.cluster_fabric import Switches
from ...inputs.site_file import BadInput, site
from .measured_collectives import measured_collectives

if TYPE_CHECKING:
    from ....models.inventory.snapshot import Snapshot

_PORTS = re.compile(r"(\d{1,4})x(\d{1,5}(?:\.\d{1,3})?)")


class ClusterSpec(Struct, frozen=True):
    """The cluster: a machine type by name or from a node, the number of machines, and their network."""

    machine: str | None = None
    nodes: int = 1
    network: str | None = None  # "8x400": NICs of a node, Gb/s of each
    switches: str | None = None  # "64x400": ports of a switch, Gb/s of each
    rails: bool = False
    oversubscription: float = 1.0
    source: Sequence[str] = ()  # dumps of the node, or of nccl-tests on such machines
    root: str = "/"
    site: str | None = None


def cluster(spec: ClusterSpec) -> Cluster:
    """The cluster with its measured collective times. Raises BadInput."""
    return machine_and_cluster(spec)[1]


def machine_and_cluster(spec: ClusterSpec) -> tuple[Machine, Cluster]:
    """The machine type, and the cluster with its measured collective times. Raises BadInput."""
    if spec.nodes < 1:
        raise BadInput(f"--nodes {spec.nodes}: at least one node is required")
    needs_node = spec.machine is None or bool(spec.source)
    snapshot = _snapshot_of(spec) if needs_node else None
    machine = _named(spec) if spec.machine is not None else _recognised(snapshot)
    product = None if spec.machine is not None else _product(snapshot)
    try:
        found = _cluster(machine, spec.nodes, spec, product)
        with_nodes = partial(_cluster, machine, spec=spec, product=product)
        measured = measured_collectives(snapshot, found, machine.gpus, with_nodes) if snapshot else {}
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None
    if spec.machine is not None and spec.source and not measured:
        raise BadInput(f"--from {', '.join(spec.source)}: holds no table of nccl-tests or rccl-tests")
    if snapshot and snapshot.machine and spec.machine is None and not spec.network:
        from ....models.training.found_node import differences

        found = replace(found, found=differences(snapshot.machine, machine))
    return machine, with_measured(found, measured)


def _cluster(machine: Machine, nodes: int, spec: ClusterSpec, product: Product | None) -> Cluster:
    nics = _pair(spec.network, "--network") if spec.network else None
    switches = None
    if spec.switches:
        radix, rate = _pair(spec.switches, "--switches")
        switches = Switches(radix, rate, spec.oversubscription, spec.rails)
    elif spec.rails or spec.oversubscription != 1:
        raise BadInput("--rails and --oversubscription need the switches: add --switches 64x400 (ports x Gb/s)")
    return cluster_of(machine, nodes, switches, nics, product)


def _pair(text: str, option: str) -> tuple[int, float]:
    """Parse "8x400": the number, and the bytes per second of each."""
    read = _PORTS.fullmatch(text)
    if read is None or not int(read[1]) or not float(read[2]):
        raise BadInput(f"{option} {text}: write a number and Gb/s of each: 8x400")
    return int(read[1]), float(read[2]) * 1e9 / 8


def node_of(spec: ClusterSpec) -> Snapshot | None:
    """The node whose type is the cluster's. None: the type has a name, so no node is read."""
    return _snapshot_of(spec) if spec.machine is None else None


def _snapshot_of(spec: ClusterSpec) -> Snapshot:
    return _read_once(spec.root, tuple(spec.source), spec.site)


@lru_cache(maxsize=1)
def _read_once(root: str, source: tuple[str, ...], site: str | None) -> Snapshot:
    from ..output.reports import snapshot_of

    return snapshot_of(root, source, site)


def _named(spec: ClusterSpec) -> Machine:
    known = {one.name: one for one in (*machines(), *site(spec.site).machine)}
    if spec.machine in known:
        return known[spec.machine]
    near = get_close_matches(spec.machine or "", known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "'linkgauge profile --list' lists them"
    raise BadInput(f"no machine type is called {spec.machine!r}; {hint}")


def _recognised(snapshot: Snapshot | None) -> Machine:
    from ....models.training.found_node import machine_as_found  # loads all rules

    machine = machine_as_found(snapshot) if snapshot else None
    if machine is None:
        raise BadInput("this node has no GPUs that linkgauge can read: name a type, such as --machine nvidia-dgx-h100")
    return machine


def _product(snapshot: Snapshot | None) -> Product | None:
    """The GPU product of the node, if all GPUs are of the same product."""
    if snapshot is None:
        return None
    functions = snapshot.of(Pci)
    found = {product_of(gpu, functions) for gpu in snapshot.of(Gpu).values()}
    return found.pop() if len(found) == 1 else None
