"""The deadline of a call in a child process. It starts when the child is ready, so a busy machine loses no source."""

from __future__ import annotations

import time

from .timeouts import no_answer

# Line that a child prints when it has imported the module of a call; no encoded record starts so
# (models/facts/jsonl.py).
READY = b"+"
TO_START = 60.0  # seconds in which a child must be ready; on a busy machine an interpreter takes several to start


class Deadline:
    """The time that is left for one call."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ready = False
        self._end = time.monotonic() + TO_START

    def start(self) -> None:
        """Start the deadline with the first line of the child. Further lines change nothing."""
        if not self._ready:
            self._ready, self._end = True, time.monotonic() + self._seconds

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._end - time.monotonic()

    @property
    def missed(self) -> str:
        """The text for a call without an answer."""
        return no_answer(self._seconds) if self._ready else f"its process was not ready within {TO_START:g} s"
