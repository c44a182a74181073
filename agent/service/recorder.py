"""The service adds its reports to the history."""

from __future__ import annotations

import os
import sqlite3

from ...models.report import Report
from ..state.history_file import FILE, Writer


class Recorder:
    """A history file that is open. After a failure, the next report opens it again."""

    def __init__(self) -> None:
        self._writer: Writer | None = None

    def close(self) -> None:
        """Close the file, so that it is complete without the files beside it."""
        if self._writer:
            self._writer.close()
        self._writer = None

    def add(self, folder: str, report: Report, at: float) -> tuple[str, str | None]:
        """Add a report. Returns the path of the file, and why it could not be written."""
        path = os.path.join(folder, FILE)
        try:
            self._writer = self._writer or Writer(folder)
            self._writer.add(report, at)
        except (OSError, sqlite3.Error) as refused:
            self._writer = None
            return path, f"{path}: {getattr(refused, 'strerror', None) or refused}: the history has a gap"
        return path, None
