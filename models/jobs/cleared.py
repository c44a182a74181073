"""Which parts of a cluster are good, because healthy communicators use them.

Equal communicators run the same collective over the same number of ranks and hosts. If one of them is slower than the
others, the parts of the faster ones do not explain it. All equal communicators can be slow because of a part that all
of them use. So for other groups, a part is good only if not all equal communicators use it, or if a communicator that
reaches the rate of the machine type uses it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from ..report import COHORT
from .expected import Rate
from .job_localization import Part

_HEALTHY = 0.9  # of the rate of equal communicators: slower ones clear no part
Parts = frozenset[Part]


class ClearedParts(Struct, frozen=True, dict=True):
    """The parts of the cluster that healthy communicators prove to be good. Keys: kind and shape of equal ones."""

    own: Mapping[object, Parts]  # proven for communicators of this kind and shape
    others: Mapping[object, Parts]  # proven by them for all other communicators

    def for_group(self, equal: object) -> Parts:
        """The parts that do not explain why communicators of this kind and shape are slow."""
        return self.own.get(equal, frozenset()) | self._of_all

    @cached_property
    def _of_all(self) -> Parts:
        return frozenset[Part]().union(*self.others.values())


def cleared_by(rates: Iterable[Rate], parts: Mapping[str, Parts]) -> ClearedParts:
    """The parts that the healthy ones of these communicators (id -> its parts) prove to be good."""
    equal = defaultdict[object, list[Rate]](list)
    for one in rates:
        equal[one.kind, one.shape].append(one)
    own, others = dict[object, Parts](), dict[object, Parts]()
    for key, several in equal.items():
        common = frozenset.intersection(*(parts[one.communicator.id] for one in several))
        healthy = [one for one in several if _is_healthy(one)]
        own[key] = _cleared(healthy, parts)
        others[key] = (own[key] - common) | _cleared([one for one in several if _is_as_fast(one)], parts)
    return ClearedParts(own, others)


def _cleared(healthy: Iterable[Rate], parts: Mapping[str, Parts]) -> Parts:
    """The parts of healthy communicators. Between nodes the NICs limit the rate, so NVLinks can still be slow."""
    found = set[Part]()
    for one in healthy:
        across = one.shape.hosts > 1
        found |= {part for part in parts[one.communicator.id] if not across or part.kind != "nvlink"}
    return frozenset(found)


def _is_healthy(one: Rate) -> bool:
    """Whether it is as fast as equal communicators. Missing ranks can only make a rate lower than it was."""
    cohort = next((each for each in one.expected if each.basis == COHORT), None)
    return cohort is not None and one.missed is None and one.observed >= _HEALTHY * cohort.typical


def _is_as_fast(one: Rate) -> bool:
    """Whether it reaches the typical rate of the machine type. A slower one can be healthy, or not."""
    model = next((each for each in one.expected if each.basis != COHORT), None)
    return model is not None and one.missed is None and one.observed >= model.typical
