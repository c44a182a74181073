"""When a service asks which source again. It knows no clock: times are those of one that does not jump, in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...models.facts.records import Record
from ...probes.calls.timeouts import hung
from ..pipeline.source import Interval, Source

_AGAIN = (60.0, 300.0, 1800.0)  # seconds after the first, the second and each further time that a source hung
_EARLY = 0.5  # seconds: a source is due with the cycle that is nearest to its time


@dataclass(frozen=True, slots=True)
class Turn:
    """When a source was asked last, and how often in a row it did not answer."""

    at: float
    hung: int = 0


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds from one time to the next: of most sources, of slow ones, of those that say what is there."""

    cycle: float
    slow: float
    discovery: float

    def of(self, source: Source) -> float:
        """How long what this source says is good for."""
        seconds = {Interval.CYCLE: self.cycle, Interval.SLOW: self.slow, Interval.DISCOVERY: self.discovery}
        return seconds[source.interval]


def due(
    sources: Iterable[Source], turns: Mapping[str, Turn], intervals: Intervals, now: float, changed: bool = False
) -> list[Source]:
    """The sources to ask now. `changed`: devices have come or gone, so all that was said of them is old."""
    return [one for one in sources if _is_due(turns.get(one.name), intervals.of(one), now, changed)]


def _is_due(turn: Turn | None, interval: float, now: float, changed: bool) -> bool:
    if turn is None:
        return True
    if turn.hung:
        return now >= turn.at + _AGAIN[min(turn.hung, len(_AGAIN)) - 1]
    return changed or now >= turn.at + interval - _EARLY


def turned(turns: Mapping[str, Turn], collected: Mapping[str, Iterable[Record]], now: float) -> dict[str, Turn]:
    """The turns after these sources were asked."""
    after = dict(turns)
    for name, said in collected.items():
        before = turns.get(name, Turn(now))
        after[name] = replace(before, at=now, hung=before.hung + 1 if any(map(hung, said)) else 0)
    return after
