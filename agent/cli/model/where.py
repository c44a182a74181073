"""The cluster that the options of `linkgauge plan` and `linkgauge collective` describe."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ....models.bandwidth.collectives import time_of
from ....models.bandwidth.message_times import Points, pace_of, seconds
from ....models.bandwidth.network_tiers import group
from ....models.catalog import machines
from ....models.catalog.gpus import Product, product_of
from ....models.facts.gpu import Gpu
from ....models.facts.machine import Pci
from ....models.facts.records import Flow
from ....models.site.schema import Machine
from ....models.training.cluster import Cluster, cluster_of, with_measured
from ....models.training.cluster_fabric import Switches
from ...inputs.site_file import BadInput, site

if TYPE_CHECKING:
    from ....models.inventory.snapshot import Snapshot

_PORTS = re.compile(r"(\d{1,4})x(\d{1,5}(?:\.\d{1,3})?)")
_MEASURED = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
_LIKE_ALL_REDUCE = ("all_gather", "reduce_scatter")  # collectives that use its measured points if they have none
_LEAST = 1 << 16  # bytes: tables round the bandwidth of smaller messages


class Where(Struct, frozen=True):
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


def cluster(where: Where) -> Cluster:
    """The cluster with its measured collective times. Raises BadInput."""
    return machine_and_cluster(where)[1]


def machine_and_cluster(where: Where) -> tuple[Machine, Cluster]:
    """The machine type, and the cluster with its measured collective times. Raises BadInput."""
    if where.nodes < 1:
        raise BadInput(f"--nodes {where.nodes}: at least one node is required")
    needs_node = where.machine is None or bool(where.source)
    snapshot = _snapshot_of(where) if needs_node else None
    machine = _named(where) if where.machine is not None else _recognised(snapshot)
    product = None if where.machine is not None else _product(snapshot)
    try:
        found = _cluster(machine, where.nodes, where, product)
        measured = _measured(snapshot, machine, where, product, found) if snapshot else {}
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None
    if where.machine is not None and where.source and not measured:
        raise BadInput(f"--from {', '.join(where.source)}: holds no table of nccl-tests or rccl-tests")
    if snapshot and snapshot.machine and where.machine is None and not where.network:
        from ....models.training.found_node import differences

        found = replace(found, found=differences(snapshot.machine, machine))
    return machine, with_measured(found, measured)


def _cluster(machine: Machine, nodes: int, where: Where, product: Product | None) -> Cluster:
    nics = _pair(where.network, "--network") if where.network else None
    switches = None
    if where.switches:
        radix, rate = _pair(where.switches, "--switches")
        switches = Switches(radix, rate, where.oversubscription, where.rails)
    elif where.rails or where.oversubscription != 1:
        raise BadInput("--rails and --oversubscription need the switches: add --switches 64x400 (ports x Gb/s)")
    return cluster_of(machine, nodes, switches, nics, product)


def _pair(text: str, option: str) -> tuple[int, float]:
    """Parse "8x400": the number, and the bytes per second of each."""
    read = _PORTS.fullmatch(text)
    if read is None or not int(read[1]) or not float(read[2]):
        raise BadInput(f"{option} {text}: write a number and Gb/s of each: 8x400")
    return int(read[1]), float(read[2]) * 1e9 / 8


def node_of(where: Where) -> Snapshot | None:
    """The node whose type is the cluster's. None: the type has a name, so no node is read."""
    return _snapshot_of(where) if where.machine is None else None


def _snapshot_of(where: Where) -> Snapshot:
    return _read_once(where.root, tuple(where.source), where.site)


@lru_cache(maxsize=1)
def _read_once(root: str, source: tuple[str, ...], site: str | None) -> Snapshot:
    from ..output.reports import snapshot_of

    return snapshot_of(root, source, site)


def _named(where: Where) -> Machine:
    known = {one.name: one for one in (*machines(), *site(where.site).machine)}
    if where.machine in known:
        return known[where.machine]
    near = get_close_matches(where.machine or "", known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "'linkgauge profile --list' lists them"
    raise BadInput(f"no machine type is called {where.machine!r}; {hint}")


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


def _measured(
    snapshot: Snapshot, machine: Machine, where: Where, product: Product | None, found: Cluster
) -> Mapping[tuple[str, bool], Points]:
    """(operation, whether it crosses nodes) -> points (bytes, measured time divided by predicted time).

    The prediction is for the same number of GPUs, so a table of 16 ranks also corrects the prediction for 512. Of
    several tables the one with the most ranks is used.
    """
    tables = _tables(snapshot)
    chosen: dict[tuple[str, bool], Points] = {}
    for (op, ranks), rows in sorted(tables.items(), key=lambda item: item[0][1]):
        nodes = -(-ranks // (machine.gpus or ranks))
        cluster = found if ranks <= found.gpus else replace(_cluster(machine, nodes, where, product), measured={})
        seen = group(cluster.levels, ranks)
        pace = pace_of(op, seen, cluster.algorithms, cluster.inside, cluster.switched)
        across = any(one.name != cluster.inside for one in seen)
        points = []
        for size, bus in sorted(rows.items()):
            array = size * ranks if op == "alltoall" else size
            points.append((float(array), time_of(op, ranks, size, bus) / seconds(pace, array)))
        chosen[op, across] = tuple(points)
    for op in _LIKE_ALL_REDUCE:
        for across in (False, True):
            if ("all_reduce", across) in chosen:
                chosen.setdefault((op, across), chosen["all_reduce", across])
    return chosen


def _tables(snapshot: Snapshot) -> dict[tuple[str, int], dict[int, float]]:
    """(operation, ranks) -> message bytes -> bus bandwidth in bytes per second, the best of several runs."""
    found: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for about, series in snapshot.observed.items():
        if not isinstance(about, Flow) or about.size is None or about.size < _LEAST or len(about.ends) < 2:
            continue
        op = about.op.removesuffix("-nvls")
        rates: Iterable[float] = (one.value for one in series if one.quantity == "bus_bandwidth" and one.value > 0)
        best = max(rates, default=0.0)
        if op in _MEASURED and best:
            rows = found[op, len(about.ends)]
            rows[about.size] = max(best, rows.get(about.size, 0.0))
    return found
