"""The first of the four verbs: what sources say of a machine, whatever they meet there."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from ...models.facts.reason import Reason
from ...models.facts.records import Observation, Record, Run
from ...probes.host.host import Host
from .coverage_map import gaps
from .source import Source

_log = logging.getLogger("linkgauge")


def ask(source: Source, host: Host, said: list[Record] | None = None) -> tuple[Record, ...]:
    """What the source says, as far as it came, and a Run that says how it went. `said` has it as it comes.

    The one place where any exception is caught: a source that breaks is our bug, and takes nothing else with it.
    """
    said = [] if said is None else said
    at, start, ok = host.now(), time.perf_counter(), True
    try:
        for one in source.read(host):  # one at a time: what came before a fault is kept
            said.append(one)
    except Exception as bug:
        _log.exception("source %s broke off", source.name)
        ok = False
        why = f"a fault in linkgauge itself: {type(bug).__name__}: {bug}"
        said.extend(gaps(source, Reason.FAULT, why, "report it, with a capture"))
    moved = sum(one.value for one in said if isinstance(one, Observation) and one.quantity == "bytes_moved")
    run = Run(name=source.name, ok=ok, seconds=time.perf_counter() - start, bytes=int(moved), at=at)
    return (*said, run)


def collect_each(sources: Iterable[Source], host: Host) -> dict[str, tuple[Record, ...]]:
    """What each of them says, one after the other, by name."""
    return {source.name: ask(source, host) for source in sources}
