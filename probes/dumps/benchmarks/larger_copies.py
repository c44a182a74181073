"""Series of copies of growing sizes: which of their rates another program disturbed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ....models.facts.records import Flow, Observation, Record


def drop_disturbed(records: Iterable[Record]) -> Iterator[Record]:
    """Remove the rates that are lower than the rate of a smaller size of the same copy.

    The rate of a link does not fall for larger copies, so another program disturbed the measurement (bandwidthTest on a
    healthy V100: 12.4 GB/s with 30 MB, 10.5 with 32 MB, 12.4 with 68 MB). The comparison restarts where the sizes
    restart.
    """
    most: dict[Flow, tuple[int, float]] = {}
    for one in records:
        if isinstance(one, Observation) and isinstance(one.about, Flow) and one.about.size:
            kind = replace(one.about, size=None)
            size, rate = most.get(kind, (0, 0.0))
            if one.about.size > size and one.value < rate:
                continue
            most[kind] = (one.about.size, one.value)
        yield one
