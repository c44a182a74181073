"""All layouts of a job on a cluster that break no constraint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec.structs import replace

from .cluster import Cluster
from .parallelism import Job, Layout, Value, divides_stages, tensor_violations, violations

_SHAPE = ("tensor", "context", "pipeline", "data", "expert")
_LONG = 8192  # tokens of a sequence on one GPU; longer sequences are divided over context ranks
# Values that a sweep tries, and the fewer values for large sweeps.
FINE: Mapping[str, Sequence[int]] = {
    "micro": (1, 2, 4, 8, 16),
    "interleave": tuple(range(1, 9)),
    "zero": (0, 1, 2, 3),
    "recompute": (0, 1),
}
COARSE: Mapping[str, Sequence[int]] = {**FINE, "micro": (1, 2, 4), "interleave": (1, 2, 4, 8), "zero": (1, 3)}


def layouts(
    job: Job,
    cluster: Cluster,
    tried: Mapping[str, Sequence[int]] = FINE,
    fixed: Mapping[str, Value] | None = None,
) -> Iterator[Layout]:
    """All layouts that break no constraint and have the `fixed` values, with tensor groups inside a node only."""
    given = fixed or {}
    values = {name: (int(given[name]),) if name in given else usual for name, usual in tried.items()}
    program = {name: value for name, value in given.items() if name not in _SHAPE and name not in tried}
    for shape in _shapes(job, cluster, given):
        if all(getattr(shape, name) == given[name] for name in _SHAPE if name in given):
            for one in _schedules(job, replace(shape, **program), values):
                if not program or not any(violations(job, one, cluster.gpus)):
                    yield one


def _schedules(job: Job, shape: Layout, values: Mapping[str, Sequence[int]]) -> Iterator[Layout]:
    """Layouts of one shape. The interleaved schedule needs whole parts of stages, and rounds of micro-batches."""
    each = job.sequences // shape.data
    parts = [one for one in values["interleave"] if one == 1 or _interleaves(job, shape, one)]
    sharded = values["zero"] if shape.replicas > 1 else values["zero"][:1]
    micros = [one for one in values["micro"] if each % one == 0]
    for micro, zero, interleave, again in product(micros, sharded, parts, values["recompute"]):
        if interleave == 1 or each // micro % shape.pipeline == 0:
            yield replace(shape, zero=zero, micro=micro, interleave=interleave, recompute=bool(again))


def _interleaves(job: Job, shape: Layout, parts: int) -> bool:
    return shape.pipeline > 1 and shape.schedule == "1f1b" and divides_stages(job.network, shape.pipeline, parts)


def _shapes(job: Job, cluster: Cluster, given: Mapping[str, Value]) -> Iterator[Layout]:
    """Layouts that differ only in their degrees of parallelism."""
    gpus, network = cluster.gpus, job.network
    for tensor in _divisors(math.gcd(gpus, network.heads)):
        if tensor > max(8, cluster.levels[0].children):
            return
        if any(tensor_violations(network, tensor)):
            continue
        for context in _contexts(job, gpus // tensor, given):
            for pipeline in (one for one in _divisors(gpus // tensor // context) if one <= network.layers):
                data = gpus // tensor // context // pipeline
                if job.sequences % data == 0:
                    ranks = tensor * data * context
                    for expert in _divisors(math.gcd(ranks, network.experts)) if network.experts else (1,):
                        yield Layout(tensor, pipeline, data, expert, context=context)


def _contexts(job: Job, gpus: int, given: Mapping[str, Value]) -> Iterator[int]:
    """Degrees of context parallelism. Without a given one, only long sequences are divided."""
    for one in _divisors(gpus):
        wanted = one == given["context"] if "context" in given else one == 1 or one * _LONG <= job.sequence
        if wanted and (one == 1 or job.sequence % (2 * one) == 0):
            yield one


def _divisors(number: int) -> list[int]:
    """The divisors in ascending order."""
    small = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return small + [number // one for one in reversed(small) if one * one != number]
