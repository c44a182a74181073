"""The service adds its reports to the history, and evaluates the recorded rates."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable

from ...models.facts.records import Observation, Record
from ...models.report import Report
from ..pipeline.cycle import Memory
from ..pipeline.source import Source
from ..state.history_file import FILE, Writer
from .drift_source import EVERY, NAME, read_drifts


class Recorder:
    """A history file that is open. After a failure, the next report opens it again."""

    def __init__(self) -> None:
        self._writer: Writer | None = None
        self._evaluated: float | None = None  # monotonic

    def close(self) -> None:
        """Close the file, so that it is complete without the files beside it."""
        if self._writer:
            self._writer.close()
        self._writer = None

    def add(self, folder: str, report: Report, at: float, memory: Memory) -> tuple[str, str | None]:
        """Add a report. Returns the path of the file, and why it could not be written."""
        path = os.path.join(folder, FILE)
        try:
            if not os.path.exists(path):  # deleted: a new file begins
                self.close()
            self._writer = self._writer or Writer(folder)
            self._writer.add(report, at, memory.measured)
            if memory.last:
                self._writer.add_inventory(memory.last)
        except (OSError, sqlite3.Error) as refused:
            self._writer = None
            return path, f"{path}: {getattr(refused, 'strerror', None) or refused}: the history has a gap"
        return path, None

    def sources(
        self, folder: str, memory: Memory, at: float, monotonic: float, pause: Callable[[], None] = lambda: None
    ) -> tuple[Source, ...]:
        """The source that finds drifts, if it is due. If the history cannot be read, the last result stays."""
        if self._evaluated is not None and monotonic < self._evaluated + EVERY:
            return ()
        self._evaluated = monotonic
        before = [one for one in memory.collected.get(NAME, ()) if isinstance(one, Observation)]

        def read(_: object) -> Iterable[Record]:
            try:
                return list(read_drifts(folder, at, memory.accepted, pause))
            except (OSError, ValueError):  # `add` reports what is wrong with the file
                return before

        return (Source(NAME, read),)
