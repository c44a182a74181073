"""Equal flows of one node compared: the median of the others, and the scatter."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import sqrt

from ..facts.averages import median
from ..facts.gpu import GpuPair
from ..facts.records import Flow, Observation
from ..graph.flow_paths import hops_of
from ..graph.routes import rated
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import COHORT, Expectation
from .best_rates import best_observations
from .repeated_rates import SURE, Series, deviation_within, error_of, series_of

# The largest difference between equal flows of a healthy machine. Links: 8 H200 copies within 0.2 %, 12 A100 pairs
# within 0.04 % (stas00 ml-engineering; simllm); the bound is ten times that. For host memory nothing is published:
# copies with few threads vary with placement, so its bound is wide. If the flows of a node scatter more (56 pairs of
# B200 with 16 MiB: 5.8 %), _apart() computes the bound.
COHORT_LINK, COHORT_MEMORY = 0.02, 0.15
# Share of slow flows. With more, and with unknown paths, the slow flows are probably of another kind, not faulty.
_MOST_SLOW = 0.25
_FAR = 0.6  # of the fastest: paths of healthy machines differ less
_SMALLEST_COHORT = 3  # others to compare with; with fewer, the slow one cannot be identified
_MEDIAN = 1.571  # pi/2: variance of a median relative to a mean (normal distribution)
# Median deviation in the closest half of 8 to 56 normal deviates, in standard deviations.
_CLOSEST = 0.26
# The spread of series, in errors, from which it counts as real. Without a real difference 99 % of 3,000 drawn sets of
# normal deviates spread less: 2.8 errors for 8 flows, 2.0 for 56. 90 % spread less than 1.2 + 6 / count errors.
_REAL = 3.0
_ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_FEWEST_FOR_NOISE = 8  # flows; fewer give no reliable scatter


def by_cohort(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """The median of the other flows of the cohort."""
    best = best_observations(snapshot)
    others = others_of(snapshot, flow)
    if len(others) < _SMALLEST_COHORT:
        return
    typical = median(best[other].value for other in others)
    apart = healthy_loss(snapshot, flow, len(others))
    slower = sum(1 for other in others if best[other].value < (1 - apart) * typical)
    if not hops_of(snapshot.topology, flow):
        if _all_of_one_device([flow, *others], best):
            apart = min(apart, 1 - _FAR)
        elif slower > _MOST_SLOW * len(others):
            return
    source = f"median of {len(others)} equal flows of this node"
    low, high = max(0.0, 1 - apart) * typical, (1 + apart) * typical
    yield Expectation(basis=COHORT, low=low, typical=typical, high=high, source=source)


def _all_of_one_device(flows: Sequence[Flow], best: Mapping[Flow, Observation]) -> bool:
    """Whether the flows of one device are far slower than all others: the device is at fault, not a kind of path."""
    most = max(best[flow].value for flow in flows)
    slow = [flow for flow in flows if best[flow].value < _FAR * most]
    common = frozenset.intersection(*(frozenset(flow.ends) for flow in slow)) if slow else frozenset[str]()
    fast = {end for flow in flows if flow not in slow for end in flow.ends}
    return len(common - fast) == 1 and len(fast) >= _SMALLEST_COHORT


def others_of(snapshot: Snapshot, flow: Flow) -> list[Flow]:
    """The other flows of the cohort. A series is compared with series, because single measurements scatter more."""
    others = [other for other in cohort_of(snapshot).get(cohort_key(snapshot, flow), ()) if other != flow]
    series = series_of(snapshot)
    repeated = [other for other in others if other in series]
    return repeated if len(repeated) >= _SMALLEST_COHORT else others


def healthy_loss(snapshot: Snapshot, flow: Flow, others: int) -> float:
    """The largest share by which a healthy flow is below the median of so many others.

    Repeated measurements give the error of a series, so its bound falls with each measurement. The spread of a cohort
    whose series differ by more than their errors is real, and no repetition removes it: its bound is that of single
    measurements.
    """
    floor = COHORT_MEMORY if len(flow.ends) == 1 else COHORT_LINK
    error = sqrt(1 + _MEDIAN / others)  # the median of few others has an error too
    if _is_error_known(snapshot, flow):
        return max(floor, SURE * noise(snapshot, flow) * error)
    scatter, count = _scatter(snapshot).get(_manner(flow), (0.0, 1))
    return max(floor, scatter * _apart(count) * error)


def relative_error(snapshot: Snapshot, flow: Flow, others: int) -> float:
    """The standard error of a flow relative to the median of so many others. An estimate from few flows is rough."""
    scatter = _scatter(snapshot).get(_manner(flow), (0.0, 0))[0]
    return float((noise(snapshot, flow) or scatter / _CLOSEST) * (1 + _MEDIAN / others) ** 0.5)


def noise(snapshot: Snapshot, flow: Flow) -> float:
    """Relative standard deviation of rates like this one; 0 with too few of them. That of a series is its error."""
    scatter, count = _scatter(snapshot).get(_manner(flow), (0.0, 0))
    if _is_error_known(snapshot, flow):
        series = series_of(snapshot).get(flow)
        error = error_of(_within(snapshot)[_manner(flow)], series.count if series else 1)
        # Without a spread, no cohort has enough series.
        return error * max(1.0, _spread(snapshot).get(_manner(flow), 0.0) / (1.2 + 6 / count)) if count else error
    return scatter / _CLOSEST if count >= _FEWEST_FOR_NOISE else 0.0


def _is_error_known(snapshot: Snapshot, flow: Flow) -> bool:
    """Whether repeated measurements of the cohort show the error of the flow, and it explains how much equals differ.

    A flow of the cohort without a series was measured less often, because its rate changed. Its error is larger.
    """
    series, manner = series_of(snapshot), _manner(flow)
    cohort = cohort_of(snapshot).get(cohort_key(snapshot, flow), ())
    if manner not in _within(snapshot) or not any(one in series for one in (flow, *cohort)):
        return False
    return _spread(snapshot).get(manner, 0.0) <= _REAL


@once_per_snapshot
def _spread(snapshot: Snapshot) -> Mapping[Hashable, float]:
    """By manner: how much the series of a cohort differ, in their errors. About 1 if equal flows are really equal."""
    series, apart = series_of(snapshot), defaultdict[Hashable, list[float]](list)
    for cohort in cohort_of(snapshot).values():
        manner = _manner(cohort[0])
        several = [series[flow] for flow in cohort if flow in series]
        if len(several) > _SMALLEST_COHORT and manner in _within(snapshot):
            error = error_of(_within(snapshot)[manner], min(one.count for one in several))
            apart[manner] += [one / error for one in _deviations([one.middle for one in several])]
    return {manner: median(several) / _CLOSEST for manner, several in apart.items()}


@once_per_snapshot
def _within(snapshot: Snapshot) -> Mapping[Hashable, float]:
    """By manner: the relative standard deviation of one measurement, if enough series of equal flows show it.

    Rates that never differ are copies of one measurement, for example an output that was pasted several times.
    """
    groups = defaultdict[Hashable, list[Series]](list)
    for flow, series in series_of(snapshot).items():
        groups[_manner(flow)].append(series)
    within = {
        manner: deviation_within(several) for manner, several in groups.items() if len(several) > _SMALLEST_COHORT
    }
    return {manner: deviation for manner, deviation in within.items() if deviation}


@once_per_snapshot
def _scatter(snapshot: Snapshot) -> Mapping[Hashable, tuple[float, int]]:
    """By manner: the median relative deviation within all its cohorts, and their number of flows."""
    best = best_observations(snapshot)
    apart, counts = defaultdict[Hashable, list[float]](list), Counter[Hashable]()
    for cohort in cohort_of(snapshot).values():
        if len(cohort) > _SMALLEST_COHORT:
            apart[_manner(cohort[0])] += _deviations([best[flow].value for flow in cohort])
            counts[_manner(cohort[0])] += len(cohort)
    return {manner: (median(several), counts[manner]) for manner, several in apart.items()}


def _deviations(values: Sequence[float]) -> list[float]:
    """Relative deviations from the median in the closest half of the values, which excludes flows with a fault."""
    ordered, size = sorted(values), len(values) // 2 + 1
    start = min(range(len(ordered) - size + 1), key=lambda place: ordered[place + size - 1] - ordered[place])
    closest = ordered[start : start + size]
    typical = median(closest)
    return [abs(value / typical - 1) for value in closest]


def _apart(count: int) -> float:
    """How many scatters the slowest of `count` flows must be below the others. By chance this happens on at most 1 % of
    nodes.

    From 2,000 drawn sets of normal deviates per size: 60 for 8, 34 for 12, 43 for 20 in four groups, 23 for 24, 17 for
    56. For four or five flows it would be hundreds, so no flow would ever count as slow. Their bound is lower, so false
    alarms are likelier.
    """
    return 20 + 200 / count + 1600 / count**2


def _manner(flow: Flow) -> Hashable:
    """Flows with equal scatter: same operation, size and number of simultaneous flows."""
    return flow.op, flow.size, flow.via, len(flow.beside)


@once_per_snapshot
def cohort_of(snapshot: Snapshot) -> Mapping[Hashable, Sequence[Flow]]:
    """The flows that moved data, by cohort."""
    cohort = defaultdict[Hashable, list[Flow]](list)
    for flow, one in best_observations(snapshot).items():
        if one.value:
            cohort[cohort_key(snapshot, flow)].append(flow)
    return cohort


def cohort_key(snapshot: Snapshot, flow: Flow) -> Hashable:
    """Key of the cohort of a flow. Its flows should be equally fast: same operation and size, similar ends and hops."""
    devices = [snapshot.topology.find(end) for end in flow.ends]
    kinds = tuple(device.kind if device else _form(end) for device, end in zip(devices, flow.ends, strict=True))
    hops = hops_of(snapshot.topology, flow)
    return _manner(flow), kinds, tuple(rated(hop) for hop in hops) if hops else _path_type(snapshot, flow)


def _form(end: str) -> str:
    """The kind of an end that only a text names: all PCI addresses between which it gives rates are of one kind."""
    return "function" if _ADDRESS.fullmatch(end) else end


def _path_type(snapshot: Snapshot, flow: Flow) -> str | None:
    """The path type of a flow between two GPUs as a driver or a report names it, if the links are unknown."""
    if len(flow.ends) != 2:
        return None
    pairs = snapshot.of(GpuPair)
    pair = pairs.get("-".join(flow.ends)) or pairs.get("-".join(flow.ends[::-1]))
    return pair.path if pair else None
