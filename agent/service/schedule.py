"""When the service reads each source again. The caller passes all times: seconds of a monotonic clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...models.facts.gpu import Driver
from ...models.facts.records import Record, Run
from ...probes.calls.timeouts import hung
from ..pipeline.run_source import is_exhausted_run
from ..pipeline.source import Interval, Source

# Seconds until a hung source is read again: after its first, its second and each further timeout.
_RETRY_AFTER = (60.0, 300.0, 1800.0)
_SLACK = 0.5  # seconds; a source is due in the cycle nearest to its time


class LastRun(Struct, frozen=True):
    """When a source was read last, and how many times in a row it hung."""

    at: float
    hung: int = 0


class Intervals(Struct, frozen=True):
    """Seconds between two reads of a source, by its kind of interval."""

    cycle: float
    slow: float
    discovery: float

    def of(self, source: Source) -> float:
        """Seconds until the source is due again."""
        seconds = {Interval.CYCLE: self.cycle, Interval.SLOW: self.slow, Interval.DISCOVERY: self.discovery}
        return seconds[source.interval]


def due(
    sources: Iterable[Source], last_runs: Mapping[str, LastRun], intervals: Intervals, now: float, changed: bool = False
) -> list[Source]:
    """The sources to read now. `changed`: devices have come or gone, so all records about them are outdated."""
    return [one for one in sources if _is_due(last_runs.get(one.name), intervals.of(one), now, changed)]


def _is_due(last_run: LastRun | None, interval: float, now: float, changed: bool) -> bool:
    if last_run is None:
        return True
    if last_run.hung:
        return now >= next_try(last_run)
    return changed or now >= last_run.at + interval - _SLACK


def next_try(last_run: LastRun) -> float:
    """When a source that hung is read again."""
    return last_run.at + _RETRY_AFTER[min(last_run.hung, len(_RETRY_AFTER)) - 1]


def updated_runs(
    last_runs: Mapping[str, LastRun], collected: Mapping[str, Iterable[Record]], now: float, again: bool = False
) -> dict[str, LastRun]:
    """The last runs, updated with the sources that were read at `now`.

    `again`: all sources are due in the next cycle, but not those that hang.
    """
    after = dict(last_runs)
    for name, records in collected.items():
        before = last_runs.get(name, LastRun(now))
        after[name] = replace(before, at=now, hung=before.hung + 1 if any(map(hung, records)) else 0)
    return {name: run for name, run in after.items() if run.hung} if again else after


def lists_other_gpus(before: Mapping[str, Iterable[Record]], now: Mapping[str, Iterable[Record]]) -> bool:
    """Whether a driver lists more or fewer GPUs than before. The sources of constant values name those of before."""
    counts = [
        {one.key: one.gpus for records in collected.values() for one in records if isinstance(one, Driver) and one.gpus}
        for collected in (before, now)
    ]
    return all(counts) and counts[0] != counts[1]


def has_run(records: Iterable[Record], since: float) -> bool:
    """Whether the source has run since. A source without a free file descriptor is read again in the next cycle."""
    return not is_exhausted_run(records) and any(isinstance(one, Run) and one.at >= since for one in records)
