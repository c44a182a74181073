"""Which part of the cluster slow communicators have in common.

A communicator is as slow as the slowest link that it uses. A part is cleared if a communicator that also uses it is
not slow. Of the other parts, the one that explains most slow communicators comes first, then the next for the rest.
models/diagnosis/localization.py does the same for flows on the routes of one node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from .placement import Place

PartKind: TypeAlias = Literal["nic", "rail", "leaf", "node", "gpu-link", "nvlink"]
# Of parts that explain the same communicators, the widest comes first: nothing shows that only a piece of it is slow.
_WIDEST: Sequence[PartKind] = ("leaf", "rail", "node", "nic", "nvlink", "gpu-link")


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


def cleared_by(parts: frozenset[Part]) -> frozenset[Part]:
    """The parts that a healthy communicator clears. Between nodes NICs limit: links inside a node may still be slow."""
    across = any(part.kind == "node" for part in parts)
    return frozenset(part for part in parts if part.kind != "nvlink") if across else parts


def localize(
    slow: Mapping[str, frozenset[Part]],
    healthy: Collection[frozenset[Part]],
    also: Mapping[str, frozenset[Part]],
) -> Iterator[Located]:
    """The parts that explain the slow communicators (id -> its parts), as few as possible.

    `also`: communicators that are all equally slow, which a part may explain besides.
    """
    cleared = frozenset[Part]().union(*healthy)
    over = defaultdict[Part, set[str]](set)
    for name, parts in (*slow.items(), *also.items()):
        for part in parts - cleared:
            over[part].add(name)
    left, unexplained = set(slow), {*slow, *also}
    while left:
        covered = {part: (len(names & left), len(names & unexplained)) for part, names in over.items()}
        most = max(covered.values(), default=(0, 0))
        if not most[0]:
            yield Located((), frozenset(left))
            return
        best = [part for part, counts in covered.items() if counts == most]
        first = min(best, key=lambda part: (_WIDEST.index(part.kind), part))
        explained = over[first] & unexplained
        alike = [part for part in best if over[part] & left & explained]
        yield Located(tuple(_widest(alike)), frozenset(explained))
        left -= explained
        unexplained -= explained


def _widest(alike: Sequence[Part]) -> Sequence[Part]:
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
