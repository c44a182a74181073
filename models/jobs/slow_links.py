"""Findings about slow communicators: the part of the cluster that explains them, or that nothing shows which one does.

A communicator is slow if equal ones are faster. If all equal ones are below the rate of the machine type, this can be
the error of that rate, or what computes at the same time: it is a finding only far below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..report import COHORT, Finding
from .cleared import cleared_by
from .expected import Rate
from .findings import localized_finding, uniform_finding
from .job_localization import Part, Slow, localize, widest

_SAME, _ERRORS = 0.1, 4  # share, and standard errors, by which rates differ at least
_FAR = 0.8  # of the lowest rate of the machine type; its error is the same for all equal communicators


def slow_links(parts: Mapping[str, frozenset[Part]], rates: Sequence[Rate]) -> Iterator[Finding]:
    """One finding for each part that explains slow communicators (id -> parts), and for what no part explains."""
    slow = _by_communicator(one for one in rates if one.missed is not None and one.missed.basis == COHORT)
    uniform = [one for one in rates if is_uniform(one) and one.communicator.id not in slow]
    cleared, explained = cleared_by(rates, parts), set[str]()
    also = _slow(parts, _by_communicator(uniform))
    for located in localize(_slow(parts, slow, uniform), also, cleared.for_group):
        explained |= located.communicators
        names = sorted(located.communicators)
        yield localized_finding(located, [one for name in names for one in slow.get(name, ())], _hosts(names, parts))
    rest = defaultdict[object, list[Rate]](list)
    for one in uniform:
        if is_far(one) and one.communicator.id not in explained:
            rest[one.kind, one.shape].append(one)
    for key, several in rest.items():
        names = [one.communicator.id for one in several]
        common = frozenset.intersection(*(parts[name] for name in names)).difference(cleared.for_group(key))
        yield uniform_finding(several, widest(sorted(common)), _hosts(names, parts))


def _by_communicator(rates: Iterable[Rate]) -> Mapping[str, Sequence[Rate]]:
    found = defaultdict[str, list[Rate]](list)
    for one in rates:
        found[one.communicator.id].append(one)
    return found


def _hosts(names: Iterable[str], parts: Mapping[str, frozenset[Part]]) -> frozenset[str]:
    return frozenset(part.host for name in names for part in parts[name] if part.host)


def _slow(
    parts: Mapping[str, frozenset[Part]],
    by_communicator: Mapping[str, Sequence[Rate]],
    uniform: Sequence[Rate] = (),
) -> Mapping[str, Slow]:
    """Each slow communicator, with the factor of its most expensive collective.

    A part makes equal communicators equally slow. So parts of a `uniform` one that is faster do not explain it.
    """
    equal = defaultdict[object, list[Rate]](list)
    for one in uniform:
        equal[one.kind, one.shape].append(one)
    found = {}
    for name, rates in by_communicator.items():
        one = max(rates, key=lambda rate: rate.lost)
        factor = one.missed.typical / one.observed if one.missed else 1.0
        key = one.kind, one.shape
        faster = [parts[other.communicator.id] for other in equal.get(key, ()) if _is_faster(other, one)]
        found[name] = Slow(parts[name].difference(*faster), factor, one.taken.error, key)
    return found


def _is_faster(other: Rate, one: Rate) -> bool:
    return other.observed > one.observed * (1 + _SAME + _ERRORS * (one.taken.error + other.taken.error))


def is_uniform(one: Rate) -> bool:
    """Whether it is below the rate of the machine type, and equal communicators are not faster."""
    return one.missed is not None and one.missed.basis != COHORT


def is_far(one: Rate) -> bool:
    """Whether it is so far below the expected rate that an error of the model does not explain it."""
    return one.missed is not None and one.observed < _FAR * one.missed.low
