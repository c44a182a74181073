"""Synthetic training jobs: nodes, groups of GPUs that run collectives, and which groups use which part of the cluster.

Group layouts are those of Megatron-LM and PyTorch: tensor parallel groups inside a node; data parallel groups over GPUs
with the same number; hybrid sharding over a few nodes and replication over all; pipelines; experts over whole nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

GPUS = 8  # of a node
NODES_OF_LEAF = 8
LAYOUTS = ("data", "tensor+data", "tensor+sharded", "tensor+pipeline+data", "expert+data")

Ids: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Dimension:
    """Groups of one kind: every GPU is in one of them. `size`: bytes of a message; 0: no collective, only waiting."""

    name: str
    op: str
    size: int
    group: Ids  # of each GPU
    repeats: int = 1  # in one step


@dataclass(frozen=True)
class Layout:
    """A job. GPU number g is GPU g % 8 of node g // 8."""

    name: str
    nodes: int
    dimensions: tuple[Dimension, ...]
    users: dict[str, frozenset[tuple[int, int]]] = field(default_factory=dict)  # part -> (dimension, group)

    @cached_property
    def across(self) -> list[bool]:
        """Whether the groups of each dimension cross nodes."""
        return [bool(np.ptp(next(iter(members(one).values())) // GPUS)) for one in self.dimensions]

    @property
    def gpus(self) -> int:
        """Of all nodes."""
        return self.nodes * GPUS


def layout(name: str, nodes: int) -> Layout:
    """The job of this layout on so many nodes, a power of two."""
    gpu = np.arange(nodes * GPUS)
    node, local = gpu // GPUS, gpu % GPUS
    per_tensor = Dimension("tp", "AllReduce", 64 << 20, node, 2)
    size = 512 << 20
    match name:
        case "data":
            parts = [Dimension("dp", "AllReduce", size, gpu * 0)]
        case "tensor+data":
            parts = [per_tensor, Dimension("dp", "AllReduce", size, local)]
        case "tensor+sharded":
            shard = max(2, int(np.sqrt(nodes)) & ~1)
            within, among = node // shard, node % shard
            sharded = Dimension("shard", "ReduceScatter", size // shard, within * GPUS + local)
            replicas = [Dimension("replica", "AllReduce", size, among * GPUS + local)] if nodes > shard else []
            parts = [per_tensor, sharded, *replicas]
        case "tensor+pipeline+data":
            stages = 2 if nodes < 16 else 4
            stage, replica = node // (nodes // stages), node % (nodes // stages)
            pipeline = Dimension("pp", "", 0, replica * GPUS + local)
            data = [Dimension("dp", "AllReduce", size, stage * GPUS + local)] if nodes > stages else []
            parts = [per_tensor, pipeline, *data]
        case _:
            of_experts = max(1, min(4, nodes // 2))
            experts = Dimension("ep", "AllGather", size // GPUS // of_experts, node // of_experts)
            parts = [experts, Dimension("dp", "AllReduce", size, node % of_experts * GPUS + local)]
    made = Layout(name, nodes, tuple(parts))
    return Layout(name, nodes, made.dimensions, users_of(made))


def members(dimension: Dimension) -> dict[int, Ids]:
    """The GPUs of each group."""
    order = np.argsort(dimension.group, kind="stable")
    groups, starts = np.unique(dimension.group[order], return_index=True)
    return dict(zip(groups.tolist(), np.split(order, starts[1:]), strict=True))


def users_of(job: Layout) -> dict[str, frozenset[tuple[int, int]]]:
    """For each part of the cluster, the groups whose data pass it. A leaf is passed by what leaves a node below it."""
    found = defaultdict[str, set[tuple[int, int]]](set)
    for index, dimension in enumerate(job.dimensions):
        if not dimension.size:
            continue
        for group, gpus in members(dimension).items():
            for part in _parts(gpus):
                found[part].add((index, group))
    return {part: frozenset(groups) for part, groups in found.items()}


def _parts(gpus: Ids) -> Iterator[str]:
    nodes = set((gpus // GPUS).tolist())
    if len(nodes) == 1:
        host = host_of(nodes.pop())
        yield from (f"{host}/nvlink", *(f"{host}/gpu{gpu % GPUS}" for gpu in gpus.tolist()))
        return
    yield from (f"{host_of(gpu // GPUS)}/nic{gpu % GPUS}" for gpu in gpus.tolist())
    yield from (f"rail{rail}" for rail in set((gpus % GPUS).tolist()))
    yield from (f"leaf{leaf}" for leaf in {node // NODES_OF_LEAF for node in nodes})
    yield from map(host_of, nodes)
    if len(gpus) > len(nodes):
        yield from (f"{host_of(node)}/nvlink" for node in nodes)


def host_of(node: int) -> str:
    """The name of a node."""
    return f"node{node:03d}"


def table_of_ranks(job: Layout) -> str:
    """The table for --ranks."""
    rows = (f"{gpu},{host_of(gpu // GPUS)},{gpu % GPUS},leaf{gpu // GPUS // NODES_OF_LEAF}" for gpu in range(job.gpus))
    return "\n".join(["rank,host,gpu,leaf", *rows]) + "\n"
