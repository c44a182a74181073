"""Collectives that were measured on machines of a cluster: tables of nccl-tests and rccl-tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from ....models.bandwidth.collectives import time_of
from ....models.bandwidth.message_times import Points, pace_of, seconds
from ....models.bandwidth.network_tiers import group
from ....models.facts.records import Flow
from ....models.inventory.snapshot import Snapshot
from ....models.training.cluster import Cluster

_MEASURED = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
_LIKE_ALL_REDUCE = ("all_gather", "reduce_scatter")  # collectives that use its measured points if they have none
_LEAST = 1 << 16  # bytes: tables round the bandwidth of smaller messages


def measured_collectives(
    snapshot: Snapshot, found: Cluster, node_gpus: int | None, cluster_with: Callable[[int], Cluster]
) -> Mapping[tuple[str, bool], Points]:
    """(operation, whether it crosses nodes) -> points (bytes, measured time divided by predicted time).

    `found`: the cluster. `cluster_with`: number of nodes -> such a cluster, for tables of more ranks.

    The prediction is for the same number of GPUs, so a table of 16 ranks also corrects the prediction for 512. Of
    several tables the one with the most ranks is used.
    """
    tables = _tables(snapshot)
    chosen: dict[tuple[str, bool], Points] = {}
    for (op, ranks), rows in sorted(tables.items(), key=lambda item: item[0][1]):
        nodes = -(-ranks // (node_gpus or ranks))
        cluster = found if ranks <= found.gpus else replace(cluster_with(nodes), measured={})
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
