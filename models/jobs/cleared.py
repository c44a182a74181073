"""Which parts of a cluster the communicators that are not slow clear.

Equal communicators that differ share what does not explain the difference. All of them can be slow because of a part
that all use. So for communicators of another kind, only what they do not all use is cleared, or what the rate of the
machine type clears.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from .expected import Rate
from .localization import Part

_HEALTHY = 0.9  # of the rate of equal communicators: slower ones clear no part
Parts = frozenset[Part]


class Cleared(Struct, frozen=True, dict=True):
    """Asked for the parts that are cleared for communicators of one kind and shape."""

    own: Mapping[object, Parts]  # by communicators of this kind and shape
    others: Mapping[object, Parts]  # for all other ones

    def __call__(self, equal: object) -> Parts:
        """The parts that do not explain why these communicators are slow."""
        return self.own.get(equal, frozenset()) | self._of_all

    @cached_property
    def _of_all(self) -> Parts:
        return frozenset[Part]().union(*self.others.values())


def cleared_by(rates: Iterable[Rate], parts: Mapping[str, Parts]) -> Cleared:
    """What the healthy ones of these communicators (id -> its parts) clear."""
    equal = defaultdict[object, list[Rate]](list)
    for one in rates:
        equal[one.kind, one.shape].append(one)
    own, others = dict[object, Parts](), dict[object, Parts]()
    for key, several in equal.items():
        common = frozenset.intersection(*(parts[one.communicator.id] for one in several))
        healthy = [one for one in several if _is_healthy(one)]
        own[key] = _cleared(healthy, parts)
        others[key] = (own[key] - common) | _cleared([one for one in several if _is_as_fast(one)], parts)
    return Cleared(own, others)


def _cleared(healthy: Iterable[Rate], parts: Mapping[str, Parts]) -> Parts:
    """Between nodes NICs limit: links inside a node may still be slow."""
    found = set[Part]()
    for one in healthy:
        across = one.shape.hosts > 1
        found |= {part for part in parts[one.communicator.id] if not across or part.kind != "nvlink"}
    return frozenset(found)


def _is_healthy(one: Rate) -> bool:
    """Whether it is as fast as equal communicators. Missing ranks can only make a rate lower than it was."""
    kin = next((each for each in one.expected if each.basis == "kin"), None)
    return kin is not None and one.missed is None and one.observed >= _HEALTHY * kin.typical


def _is_as_fast(one: Rate) -> bool:
    """Whether it reaches what good machines of the type reach. Slower ones can be well, or not."""
    model = next((each for each in one.expected if each.basis != "kin"), None)
    return model is not None and one.missed is None and one.observed >= model.typical
