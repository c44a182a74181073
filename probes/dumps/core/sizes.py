"""Rates of many sizes of one copy, as tools print them that go from small to large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ....models.facts.records import Flow, Observation, Record


def undisturbed(said: Iterable[Record]) -> Iterator[Record]:
    """All but the rates of copies that were slower than a shorter one before them.

    A link is no slower for longer copies: something else was in their way (bandwidthTest on a healthy V100: 12.4 GB/s
    with 30 MB, 10.5 with 32 MB, 12.4 with 68 MB). Where sizes begin anew, so does this.
    """
    most: dict[Flow, tuple[int, float]] = {}
    for one in said:
        if isinstance(one, Observation) and isinstance(one.about, Flow) and one.about.size:
            kind = replace(one.about, size=None)
            size, rate = most.get(kind, (0, 0.0))
            if one.about.size > size and one.value < rate:
                continue
            most[kind] = (one.about.size, one.value)
        yield one
