"""Messages of expert parallelism: each token goes to the GPUs of its experts, and back.

Without `per_node`, every GPU that has an expert of the token receives it in one AllToAll. With it, every node receives
the token once, and forwards it over its own links (DeepSeek-V3 technical report, 3.2.2; deepseek-ai/DeepEP). Both parts
run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..bandwidth.collectives import distinct
from ..bandwidth.message_times import Pace, pace_of, seconds
from ..bandwidth.network_tiers import group, ranks_of
from .cluster import Cluster
from .parallelism import Job, Layout

PaceOf: TypeAlias = Callable[[int], Pace]  # of an AllToAll by the number of neighbouring ranks
# Mean bytes per number of both directions: results return in bf16 (DeepSeek-V3 technical report, 3.3.3).
_BYTES = {"bf16": 2.0, "fp8": (1.0 + 2.0) / 2, "fp4": (0.5 + 2.0) / 2}


def exchange(job: Job, layout: Layout, cluster: Cluster, pace: PaceOf) -> tuple[float, str]:
    """Mean seconds of one of both directions for a layer and micro-batch, and the level that limits it."""
    width = _BYTES[layout.precision] * layout.tokens(job) * job.network.width / layout.tensor
    active, ranks = job.network.active, layout.expert
    if not layout.per_node:
        whole = pace(ranks)
        return seconds(whole, _array(width, ranks, _targets(active, ranks))), whole.held
    levels = group(cluster.levels, ranks, 1)
    near = [one for one in levels if one.name == cluster.inside]
    far = [one for one in levels if one.name != cluster.inside]
    inside, nodes = ranks_of(near), ranks_of(far)
    received = _targets(active, ranks) * inside / max(1, ranks - 1)  # by all GPUs of a node for each of its tokens
    parts = [(0.0, "")]
    if inside > 1:
        within = pace(inside)
        parts.append((seconds(within, _array(width, inside, received * (inside - 1) / inside * nodes)), within.held))
    if nodes > 1:
        most = min(nodes, job.network.node_limit or nodes)
        between = pace_of("alltoall", far, cluster.algorithms, cluster.inside)
        copies = _targets(active, most) * most / max(1, most - 1) * (nodes - 1) / nodes
        parts.append((seconds(between, _array(inside * width, nodes, copies)), between.held))
    return max(parts)


def _targets(active: int, ranks: int) -> float:
    """Expected number of other ranks that have one of the token's experts."""
    return ranks * distinct(active, ranks)


def _array(width: float, ranks: int, sent: float) -> float:
    """Bytes of the array whose AllToAll sends `sent` times `width` from each rank."""
    return width * sent * ranks * ranks / (ranks - 1)
