"""The fewest candidate causes that explain all elements: the one that explains most, then the next for the rest.

This greedy choice needs few more candidates than the smallest cover (Chvatal, A Greedy Heuristic for the Set-Covering
Problem, 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

Candidate = TypeVar("Candidate", bound=Hashable)
Element = TypeVar("Element", bound=Hashable)


class Choice(Struct, Generic[Candidate, Element], frozen=True):
    """A candidate of the cover. Elements that an earlier one explained are left out."""

    candidate: Candidate
    covered: Mapping[Candidate, frozenset[Element]]  # of each candidate that covers as many elements, itself included
    explained: frozenset[Element]


def smallest_cover(
    unexplained: Collection[Element],
    candidates: Mapping[Candidate, Collection[Element]],
    rank: Callable[[Candidate, frozenset[Element]], Any],
    minimum: int = 1,
    *,
    optional: Collection[Element] = (),
    explains: Mapping[Candidate, Collection[Element]] | None = None,
) -> Iterator[Choice[Candidate, Element]]:
    """Choose candidates until none covers at least `minimum` of the remaining elements.

    `candidates`: candidate -> the elements that it covers. Of those that cover as many elements, one that covers more
    of the `optional` elements is chosen, then the one with the lowest `rank` of (candidate, remaining elements).
    `explains`: what a chosen candidate explains, if that is more than what it covers.
    """
    left, optional = frozenset(unexplained), frozenset(optional)
    while True:
        covered = {one: (left.intersection(own), optional.intersection(own)) for one, own in candidates.items()}
        most = max((_sizes(own) for own in covered.values()), default=(0, 0))
        if most[0] < minimum:
            return
        best = {one: own[0] | own[1] for one, own in covered.items() if _sizes(own) == most}
        remaining = left
        first = min(best, key=lambda one: rank(one, remaining))
        explained = best[first] | left.intersection(explains[first] if explains else ())
        yield Choice(first, best, explained)
        left -= explained
        optional -= explained


def _sizes(covered: tuple[frozenset[Element], frozenset[Element]]) -> tuple[int, int]:
    return len(covered[0]), len(covered[1])
