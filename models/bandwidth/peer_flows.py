"""Equal flows of one node beside each other: what the others reach, and how far apart they lie."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from ..facts.records import Flow
from ..graph.flow_paths import hops_of
from ..graph.routes import rated
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import Expectation
from .best_rates import best_observations

# How far equal flows of one healthy machine lie apart at most. Links: 8 H200 copies within 0.2 %, 12 A100 pairs within
# 0.04 % (stas00 ml-engineering; simllm); ten times that. Host memory has no published figure: copies of a few threads
# vary with placement, so the bound is wide. Where a node's own flows scatter more (56 pairs of B200 with 16 MiB:
# 5.8 %), what is beyond what chance would make of that is apart (_apart).
COHORT_LINK, COHORT_MEMORY = 0.02, 0.15
_ODD = 0.25  # of flows whose ways are not known, more that are slower than the others are of another kind
_SMALLEST_COHORT = 3  # others to compare with: among fewer, nobody knows who is the odd one
_MEDIAN = 1.571  # pi/2: the variance of a median in that of a mean (normal distribution)
_CLOSEST = 0.26  # of a standard deviation, how far the closest half of 8 to 56 normal deviates lies from its middle
_FEWEST_FOR_NOISE = 8  # flows; fewer say little of how they scatter


def by_cohort(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """What most of the others of its kin reach."""
    best = best_observations(snapshot)
    others = [best[other].value for other in cohort_of(snapshot).get(cohort_key(snapshot, flow), ()) if other != flow]
    if len(others) < _SMALLEST_COHORT:
        return
    typical = statistics.median(others)
    scatter, count = _scatter(snapshot).get(_manner(flow), (0.0, 1))
    error = (1 + _MEDIAN / len(others)) ** 0.5  # the median of few others is off as well
    apart = max(COHORT_MEMORY if len(flow.ends) == 1 else COHORT_LINK, scatter * _apart(count) * error)
    slower = sum(1 for other in others if other < (1 - apart) * typical)
    if not hops_of(snapshot.topology, flow) and slower > _ODD * len(others):
        return
    source = f"median of {len(others)} equal flows of this node"
    low, high = max(0.0, 1 - apart) * typical, (1 + apart) * typical
    yield Expectation(basis="kin", low=low, typical=typical, high=high, source=source)


def noise(snapshot: Snapshot, flow: Flow) -> float:
    """The standard deviation of measurements like this one as a share of them; 0 where there are too few to say."""
    scatter, count = _scatter(snapshot).get(_manner(flow), (0.0, 0))
    return scatter / _CLOSEST if count >= _FEWEST_FOR_NOISE else 0.0


@once_per_snapshot
def _scatter(snapshot: Snapshot) -> Mapping[Hashable, tuple[float, int]]:
    """By manner, how flows lie apart that are most alike, as a share of them; and of how many flows that is known."""
    best = best_observations(snapshot)
    apart, counts = defaultdict[Hashable, list[float]](list), Counter[Hashable]()
    for cohort in cohort_of(snapshot).values():
        if len(cohort) > _SMALLEST_COHORT:
            apart[_manner(cohort[0])] += _deviations([best[flow].value for flow in cohort])
            counts[_manner(cohort[0])] += len(cohort)
    return {manner: (statistics.median(several), counts[manner]) for manner, several in apart.items()}


def _deviations(values: Sequence[float]) -> list[float]:
    """Of the half that lies closest together, from its median: what a fault slows does not count, even by far."""
    ordered, size = sorted(values), len(values) // 2 + 1
    start = min(range(len(ordered) - size + 1), key=lambda place: ordered[place + size - 1] - ordered[place])
    closest = ordered[start : start + size]
    typical = statistics.median(closest)
    return [abs(value / typical - 1) for value in closest]


def _apart(count: int) -> float:
    """How many times that scatter the slowest of so many is below the others in one of 100 nodes by chance, or less.

    By drawing 2,000 sets of normal deviates of each size: 60 times of 8, 34 of 12, 43 of 20 in four groups, 23 of 24,
    17 of 56. Of four or five it would be hundreds: nobody could be slow. There the bound is lower, an alarm likelier.
    """
    return 20 + 200 / count + 1600 / count**2


def _manner(flow: Flow) -> Hashable:
    """Flows that scatter alike: of one operation and size, and as many at once."""
    return flow.op, flow.size, flow.via, len(flow.beside)


@once_per_snapshot
def cohort_of(snapshot: Snapshot) -> Mapping[Hashable, Sequence[Flow]]:
    """The flows that moved anything, by kinship."""
    cohort = defaultdict[Hashable, list[Flow]](list)
    for flow, one in best_observations(snapshot).items():
        if one.value:
            cohort[cohort_key(snapshot, flow)].append(flow)
    return cohort


def cohort_key(snapshot: Snapshot, flow: Flow) -> Hashable:
    """Flows of one kinship should be equally fast: same operation and size, like ends, like hops."""
    devices = [snapshot.topology.find(end) for end in flow.ends]
    kinds = tuple(device.kind if device else end for device, end in zip(devices, flow.ends, strict=True))
    return _manner(flow), kinds, tuple(rated(hop) for hop in hops_of(snapshot.topology, flow))
