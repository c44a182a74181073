"""Which part of the cluster slow communicators have in common.

A communicator is as slow as the slowest link that it uses. cleared.py tells which parts are good. Of the other parts,
the one that explains most slow communicators comes first, then the next for the rest. If several parts explain the
rest, one that explains why a communicator is even slower than others comes first.
models/diagnosis/localization.py does the same for flows on the routes of one node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ..facts.averages import median
from ..graph.set_cover import smallest_cover
from .placement import Place

PartKind: TypeAlias = Literal["nic", "rail", "leaf", "node", "gpu-link", "nvlink"]
# Of parts that explain the same communicators, the widest comes first: nothing shows that only a piece of it is slow.
_WIDEST: Sequence[PartKind] = ("leaf", "rail", "node", "nic", "nvlink", "gpu-link")

_FEWEST_EQUAL = 3  # communicators that show how much a part slows equal ones
_SAME, _ERRORS = 0.1, 4  # share, and standard errors, by which times differ at least
_AGREE = 0.75  # share of the others that must agree: another fault can slow some of them too


class Part(Struct, frozen=True, order=True):
    """A part of the cluster that communicators share."""

    kind: PartKind
    host: str = ""
    number: int = -1  # of the rail, or of the GPU on its host
    leaf: str = ""

    @property
    def name(self) -> str:
        """The subject of a finding."""
        match self.kind:
            case "nic":
                return f"{self.host}/nic{self.number}"
            case "rail":
                return f"rail{self.number}"
            case "leaf":
                return self.leaf
            case "node":
                return self.host
            case "gpu-link":
                return f"{self.host}/gpu{self.number}"
        return f"{self.host}/nvlink"


class Slow(Struct, frozen=True):
    """A slow communicator. `factor`: how many times longer it takes; `equal`: what equal communicators share."""

    parts: frozenset[Part]
    factor: float
    error: float  # standard error of the factor, as a share of it
    equal: object


class Located(Struct, frozen=True):
    """Slow communicators, and the parts that explain each of them equally well. A single part is the cause."""

    parts: tuple[Part, ...]
    communicators: frozenset[str]


def parts_of(places: Sequence[Place]) -> frozenset[Part]:
    """The parts of the cluster that a communicator with ranks at these places uses and that can make it slow."""
    on_host = Counter(place.host for place in places)
    links = {Part("nvlink", host) for host, count in on_host.items() if count > 1}
    if len(on_host) < 2:
        return frozenset([*links, *(Part("gpu-link", one.host, one.gpu) for one in places if one.gpu is not None)])
    nics = {Part("nic", one.host, one.rail) for one in places if one.rail is not None}
    rails = {Part("rail", number=one.rail) for one in places if one.rail is not None}
    leaves = {Part("leaf", leaf=one.leaf) for one in places if one.leaf is not None}
    return frozenset([*links, *nics, *rails, *leaves, *(Part("node", host) for host in on_host)])


def localize(
    slow: Mapping[str, Slow],
    also: Mapping[str, Slow],
    cleared: Callable[[object], Collection[Part]],
) -> Sequence[Located]:
    """The parts that explain the slow communicators (id -> its parts), as few as possible.

    `also`: communicators that are all equally slow, which a part may explain besides. `cleared`: the parts that do not
    explain why communicators with this `equal` are slow.
    """
    over = defaultdict[Part, set[str]](set)
    for name, one in (*slow.items(), *also.items()):
        for part in one.parts.difference(cleared(one.equal)):
            over[part].add(name)
    found = list(_fewest(slow, also.keys() - slow.keys(), over))
    single = [over[one.parts[0]] for one in found if len(one.parts) == 1]
    slower = {name for names in single for name in slower_than_others({one: slow[one] for one in names & slow.keys()})}
    return [Located(_that_explain(slower, one.parts, over), one.communicators) for one in found]


def _fewest(slow: Collection[str], also: Collection[str], over: Mapping[Part, set[str]]) -> Iterator[Located]:
    """The part that explains most, then the next for the rest, and at last the communicators that no part explains."""
    left = frozenset(slow)
    for choice in smallest_cover(slow, over, _preference, optional=also):
        own = choice.covered[choice.candidate] & left
        alike = [part for part, names in choice.covered.items() if names & own]
        yield Located(tuple(widest(alike)), choice.explained)
        left -= choice.explained
    if left:
        yield Located((), left)


def _preference(part: Part, remaining: object) -> tuple[int, Part]:
    return _WIDEST.index(part.kind), part


def slower_than_others(slow: Mapping[str, Slow]) -> set[str]:
    """Of communicators that one part explains, those that are slower than it makes equal ones: they use another too."""
    equal = defaultdict[object, list[str]](list)
    for name, one in slow.items():
        equal[one.equal].append(name)
    return {name for names in equal.values() for name in names if _is_slower(slow[name], names, slow)}


def _is_slower(one: Slow, names: Sequence[str], slow: Mapping[str, Slow]) -> bool:
    others = [slow[name].factor for name in names if slow[name] is not one]
    if len(others) < _FEWEST_EQUAL:
        return False
    usual = median(others)
    agree = sum(abs(each / usual - 1) < _SAME for each in others) >= _AGREE * len(others)
    return agree and one.factor > usual * (1 + _SAME + _ERRORS * one.error)


def _that_explain(slower: set[str], parts: tuple[Part, ...], over: Mapping[Part, set[str]]) -> tuple[Part, ...]:
    """Of several parts those that explain most of these communicators."""
    counts = {part: len(over[part] & slower) for part in parts} if len(parts) > 1 else {}
    return tuple(part for part in parts if counts[part] == max(counts.values())) if counts else parts


def widest(alike: Sequence[Part]) -> Sequence[Part]:
    """The parts without those that lie in another one of them. A single part remains if it contains all others."""
    ordered = sorted(alike, key=lambda part: (_WIDEST.index(part.kind), part))
    return [part for part in ordered if not any(_contains(other, part) for other in alike)]


def _contains(outer: Part, inner: Part) -> bool:
    match outer.kind:
        case "node":
            return inner.kind == "nic" and inner.host == outer.host
        case "nvlink":
            return inner.kind == "gpu-link" and inner.host == outer.host
    return False
