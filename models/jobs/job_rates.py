"""Bus bandwidth of the collectives of jobs inside this node, from the texts of the NCCL Inspector.

The values are means that contain waiting. So a high one shows good links; a low one is a finding only if equal groups
of GPUs of this node agree that they are faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..bandwidth.expectations import level_of
from ..facts.averages import median
from ..facts.gpu import Gpu
from ..facts.records import Flow, Observation
from ..facts.units import as_gigabytes, as_size
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import COHORT, Finding, Level

QUANTITY = "job_bus_bandwidth"
_FEWEST = 3  # other groups
_LESS = 0.8  # of their median
_AGREE = 0.1  # the others differ from their median by at most this share
LEAST = 16 << 20  # bytes: of smaller messages latency decides


class JobRate(Struct, frozen=True):
    """A collective of a job over GPUs of this node."""

    flow: Flow
    observation: Observation


@once_per_snapshot
def job_rates(snapshot: Snapshot) -> Sequence[JobRate]:
    """The collectives whose GPUs are all known."""
    keys = {gpu.uuid: gpu.key for gpu in snapshot.of(Gpu).values() if gpu.uuid}
    found = []
    for one in snapshot.observations:
        if one.quantity == QUANTITY and isinstance(one.about, Flow) and (one.about.size or 0) >= LEAST:
            ends = tuple(sorted(keys[end] for end in one.about.ends if end in keys))
            if len(ends) == len(one.about.ends) > 1:
                found.append(JobRate(replace(one.about, ends=ends), one))
    return tuple(found)


def proven_by_jobs(snapshot: Snapshot) -> Iterator[Level]:
    """One level for each collective that reached the rate that is expected of its GPUs: their links are good."""
    for one in job_rates(snapshot):
        level = level_of(snapshot, one.flow)
        if level.observed is None and level.expected and one.observation.value >= level.expected[0].low:
            yield replace(level, op=f"{level.op} of a job", observed=one.observation.value)


def slow_groups(snapshot: Snapshot) -> Iterator[Finding]:
    """Groups of GPUs that are slower than equal groups of this node, which agree."""
    equal = defaultdict[tuple[str, int | None, int], list[JobRate]](list)
    for one in job_rates(snapshot):
        equal[one.flow.op, one.flow.size, len(one.flow.ends)].append(one)
    for several in equal.values():
        for one in several:
            others = [other.observation.value for other in several if set(other.flow.ends).isdisjoint(one.flow.ends)]
            if len(others) >= _FEWEST and _behind(one.observation.value, others):
                yield _finding(one, others)


def _behind(value: float, others: Sequence[float]) -> bool:
    typical = median(others)
    return value < _LESS * typical and all(abs(other / typical - 1) <= _AGREE for other in others)


def _finding(one: JobRate, others: Sequence[float]) -> Finding:
    typical, reached = median(others), one.observation.value
    return Finding(
        code="bandwidth-low",
        severity="warning",
        confidence="likely",
        subject=one.flow.subject,
        message=f"{one.flow.op} of {as_size(one.flow.size or 0)} of a job reaches {as_gigabytes(reached)} of bus "
        f"bandwidth over {one.flow.subject}, where {len(others)} equal groups of GPUs reach {as_gigabytes(typical)}",
        expected=typical,
        observed=reached,
        unit="bytes_per_second",
        basis=COHORT,
        expected_source=f"median of {len(others)} equal groups of GPUs of this node",
        cause="the links between these GPUs are slower, or all of them wait for each other in turn",
        evidence=(one.observation.evidence,),
        case="in a job",
    )
