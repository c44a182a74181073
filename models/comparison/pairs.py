"""Which devices of two nodes belong together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeAlias

from ..graph.path_types import natural
from .side import Item, Side

_MarkOf: TypeAlias = Callable[[str, Item], Hashable]


def paired(a: Side, b: Side) -> Mapping[str, str]:
    """The ids of items of `b` by those of `a`.

    Two items of one kind belong together if they have the same UUID, else the same address, else the same slot or
    module, else the same name and product. Those that remain belong together in the order of their addresses if they
    are equally many of one product: machines of one type can number their buses differently.
    """
    pairs: dict[str, str] = {}
    for mark_of in (_uuid, _id, _place, _name):
        left, right = _by_mark(a, pairs.keys(), mark_of), _by_mark(b, pairs.values(), mark_of)
        pairs |= {left[mark]: right[mark] for mark in left.keys() & right.keys()}
    left_over, others = _by_product(a, pairs.keys()), _by_product(b, pairs.values())
    for product, ids in left_over.items():
        if len(ids) == len(others.get(product, ())):
            pairs |= dict(zip(ids, others[product], strict=True))
    return pairs


def _uuid(_: str, item: Item) -> Hashable:
    return item.uuid


def _id(key: str, item: Item) -> Hashable:
    return key, item.kind


def _place(_: str, item: Item) -> Hashable:
    return item.place and (item.place, item.kind)


def _name(_: str, item: Item) -> Hashable:
    return item.product and (item.name, item.kind, item.product)


def _by_mark(side: Side, done: Collection[str], mark_of: _MarkOf) -> Mapping[Hashable, str]:
    """The ids of items by their mark, without marks that several items have."""
    marks = {key: mark_of(key, item) for key, item in side.items.items() if key not in done}
    count = Counter(marks.values())
    return {mark: key for key, mark in marks.items() if mark and count[mark] == 1}


def _by_product(side: Side, done: Collection[str]) -> Mapping[Hashable, list[str]]:
    """The ids of items by kind and product, in the order of their ids."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for key in sorted(side.items, key=natural):
        item = side.items[key]
        if key not in done:
            groups[item.kind, item.product].append(key)
    return groups
