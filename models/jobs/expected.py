"""The bus bandwidth that a communicator should reach, from equal communicators of the job and from the machine type."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..facts.averages import median
from ..report import COHORT, Expectation
from ..training.cluster import Cluster
from ..training.collective_time import AUTO, LONGEST, Request, collective_of
from .log import Communicator, Kind
from .placement import Place
from .rates import array_size, bus_rate
from .timing import Taken

_MODELLED = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
_ALGORITHMS = {"RING": "ring", "TREE": "tree"}
_SLOW_PROTOCOL = "LL"  # half of its bytes are flags
_BOUND = 0.5  # share of the rate of long messages from which on the bandwidth counts, not the latency
_FEWEST_EQUAL = 3  # communicators besides the one that is judged
_BELOW_EQUAL = 0.8  # of the median of equal communicators; they differ by a few percent
_FASTER = 0.75  # share of equal communicators that may be slow: two faults can slow more than half of them
_ERRORS = 4  # standard errors
_FASTEST = 4e12  # bytes per second: more than twice that of any GPU's links to its peers (links.toml)
_ABOVE = 1.5  # times the rate of the fastest good machines


class Shape(Struct, frozen=True):
    """What must be equal for the rates of two communicators to be comparable."""

    ranks: int
    hosts: int
    most: int  # ranks on one host
    least: int
    leaves: int | None  # that it spans


class Rate(Struct, frozen=True, kw_only=True):
    """One kind of operation of one communicator: the observed bus bandwidth in bytes per second, and the expected."""

    communicator: Communicator
    kind: Kind
    shape: Shape
    taken: Taken
    observed: float
    expected: tuple[Expectation, ...] = ()
    missed: Expectation | None = None  # the one that the observed rate is below; None: none, or it was not judged

    @property
    def lost(self) -> float:
        """Seconds that one rank lost in all operations, compared with the typical rate that was missed."""
        if self.missed is None:
            return 0.0
        return self.taken.seconds * (1 - self.observed / self.missed.typical) * self.taken.count / self.shape.ranks

    @property
    def judged(self) -> bool:
        """Whether there was something to compare the rate with."""
        return bool(self.expected)


def shape_of(places: Sequence[Place], n_ranks: int) -> Shape:
    """The shape of a communicator whose ranks run at these places."""
    hosts = Counter(place.host for place in places)
    leaves = {place.leaf for place in places}
    known = len(leaves) if None not in leaves else None
    return Shape(n_ranks, len(hosts), max(hosts.values()), min(hosts.values()), known)


def rate_of(communicator: Communicator, kind: Kind, shape: Shape, taken: Taken) -> Rate:
    """The observed rate, not judged."""
    observed = bus_rate(kind.op, communicator.n_ranks, kind.size, taken.seconds)
    return Rate(communicator=communicator, kind=kind, shape=shape, taken=taken, observed=observed)


def modelled(kind: Kind, shape: Shape, cluster: Cluster) -> Expectation | None:
    """From the size model. None: it does not cover the operation or the shape, or latency decides at this size."""
    per_host = cluster.node_gpus
    uneven = shape.most != shape.least or not per_host or per_host % shape.most
    if kind.op not in _MODELLED or uneven or kind.protocol == _SLOW_PROTOCOL:
        return None
    stride = per_host // shape.most if shape.hosts > 1 else 1
    size = round(array_size(kind.op, shape.ranks, kind.size))
    algorithm = _ALGORITHMS.get(kind.algorithm, AUTO) if kind.op == "all_reduce" else AUTO
    try:
        found, longest = (
            collective_of(Request(kind.op, each * stride, shape.ranks, stride, algorithm), cluster)
            for each in (size, LONGEST)
        )
    except ValueError:
        return None
    if found.low is None or found.typical is None or found.high is None or longest.typical is None:
        return None
    if found.typical.bus_bandwidth < _BOUND * longest.typical.bus_bandwidth:
        return None
    return Expectation(
        basis="capability",
        low=found.low.bus_bandwidth,
        typical=found.typical.bus_bandwidth,
        high=found.high.bus_bandwidth,
        bottleneck=found.level,
        source=f"{cluster.name}, {shape.most} of {per_host} GPUs of each node: {found.source}",
    )


def implausible(rates: Iterable[Rate], cluster: Cluster | None) -> frozenset[str]:
    """Communicators with a rate that no link gives: their times are wrong."""
    found = set[str]()
    highest = dict[tuple[Kind, Shape], float]()
    for one in rates:
        key = one.kind, one.shape
        if key not in highest:
            model = modelled(*key, cluster) if cluster else None
            highest[key] = _ABOVE * model.high if model else _FASTEST
        if one.observed > highest[key]:
            found.add(one.communicator.id)
    return frozenset(found)


def judged(rates: Iterable[Rate], cluster: Cluster | None, averaged: bool = False) -> tuple[Rate, ...]:
    """The rates with what the machine type gives and what equal communicators reach, and what each rate misses.

    `averaged`: the times are means that contain waiting, so a rate below that of the machine type says nothing.
    """
    every = tuple(rates)
    equal = defaultdict[tuple[Kind, Shape], list[Rate]](list)
    for one in every:
        equal[one.kind, one.shape].append(one)
    models = {key: modelled(*key, cluster) for key in equal} if cluster else {}
    return tuple(_judged(one, models.get((one.kind, one.shape)), equal[one.kind, one.shape], averaged) for one in every)


def _judged(one: Rate, model: Expectation | None, equal: Sequence[Rate], averaged: bool) -> Rate:
    """Equal communicators are compared first: the machine type does not know how much of a job overlaps."""
    others = [other.observed for other in equal if other is not one]
    cohort = _of_equals(others, None if averaged else model)
    expected = tuple(each for each in (cohort, model) if each is not None)
    least = one.observed * (1 + _ERRORS * one.taken.error)
    counting = [each for each in expected if each.basis == COHORT or not averaged]
    missed = next((each for each in counting if least < each.low), None) if one.taken.complete else None
    return replace(one, expected=expected, missed=missed)


def _of_equals(others: Sequence[float], model: Expectation | None) -> Expectation | None:
    """From equal communicators: their median. If it is low too, or of one or two: those that the machine type clears.

    None: too few equal communicators, and the machine type does not show that these are well.
    """
    if not others:
        return None
    middle, upper = median(others), sorted(others)[math.ceil(_FASTER * len(others)) - 1]
    few = len(others) < _FEWEST_EQUAL
    if model is not None and upper >= model.low and (few or middle < _BELOW_EQUAL * upper):
        return _of_cohort(upper, others, f"the faster ones of {len(others) + 1} equal communicators of this job")
    return None if few else _of_cohort(middle, others, f"median of {len(others)} equal communicators of this job")


def _of_cohort(typical: float, others: Sequence[float], source: str) -> Expectation:
    return Expectation(basis=COHORT, low=_BELOW_EQUAL * typical, typical=typical, high=max(others), source=source)
