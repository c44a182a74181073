"""A function call in a thread of its own, for functions that may never return."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class ThreadedCall(Generic[T]):
    """One call. Its daemon thread ends with the process."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._results: list[T] = []
        self._faults: list[Exception] = []
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, until: float) -> bool:
        """Wait until the time `until` (monotonic, seconds). Returns whether the call has ended."""
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    def answer(self) -> T:
        """The result of the ended call. Raises the exception of the function."""
        if self._faults:
            raise self._faults[0]
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._function())
        except Exception as fault:
            self._faults.append(fault)
