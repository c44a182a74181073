"""Run a source on a machine and collect its records, including after a fault."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ...models.facts.reason import Reason, is_exhausted
from ...models.facts.records import NotChecked, Observation, Record, Run
from ...probes.host.host import Host
from .source import Interval, Source

# The highest age in seconds of records that replace those of a source without a file descriptor.
_MAX_AGE_IF_EXHAUSTED = {Interval.CYCLE: 300.0, Interval.SLOW: 900.0, Interval.DISCOVERY: 3900.0}

_MORE = "raise the limit of open files of linkgauge (LimitNOFILE) or of the machine (fs.file-max)"


def collect(source: Source, host: Host, records: list[Record] | None = None) -> tuple[Record, ...]:
    """The records of the source and a Run with its result and duration. The records also go to `records` one by one.

    This is the one place that catches every exception: a source that raises has a bug, and the other sources must run.
    """
    records = [] if records is None else records
    at, start, ok = host.now(), time.perf_counter(), True
    try:
        for one in source.read(host):  # one at a time, to keep the records before a fault
            records.append(one)
    except Exception as bug:
        ok = False
        if is_exhausted(bug):
            records[:] = source.not_checked(Reason.EXHAUSTED, "linkgauge has no free file descriptor", _MORE)
        else:
            import logging

            logging.getLogger("linkgauge").exception("source %s failed (bug in linkgauge)", source.name)
            why = f"a bug in linkgauge: {type(bug).__name__}: {bug}"
            records.extend(source.not_checked(Reason.FAULT, why, "report it, with a capture"))
    moved = sum(one.value for one in records if isinstance(one, Observation) and one.quantity == "bytes_moved")
    run = Run(name=source.name, ok=ok, seconds=time.perf_counter() - start, bytes=int(moved), at=at)
    return (*records, run)


def collect_each(sources: Iterable[Source], host: Host) -> dict[str, tuple[Record, ...]]:
    """Run the sources one after the other. The records of each, by name."""
    return {source.name: collect(source, host) for source in sources}


def is_exhausted_run(records: Iterable[Record]) -> bool:
    """Whether the source could not run, because there was no free file descriptor."""
    return any(isinstance(one, NotChecked) and one.reason is Reason.EXHAUSTED for one in records)


def keep_last_if_exhausted(
    sources: Iterable[Source],
    fresh: Mapping[str, tuple[Record, ...]],
    before: Mapping[str, tuple[Record, ...]],
    now: float,
) -> Mapping[str, tuple[Record, ...]]:
    """The fresh records. A source that had no file descriptor keeps its last records for some minutes."""
    result = dict(fresh)
    for source in sources:
        last, most = before.get(source.name, ()), _MAX_AGE_IF_EXHAUSTED[source.interval]
        if not is_exhausted_run(fresh[source.name]):
            continue
        if any(isinstance(one, Run) and one.ok and now - one.at <= most for one in last):
            result[source.name] = last
    return result
