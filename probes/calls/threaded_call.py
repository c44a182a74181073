"""Something that may never be answered: asked in a thread that nobody has to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Question(Generic[T]):
    """One of them. The thread ends with the process."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answers: list[T] = []
        self._faults: list[Exception] = []
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, until: float) -> bool:
        """Whether there is an answer by the time `until`, which is monotonic."""
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    def answer(self) -> T:
        """What came; raises what was raised."""
        if self._faults:
            raise self._faults[0]
        return self._answers[0]

    def _run(self) -> None:
        try:
            self._answers.append(self._ask())
        except Exception as fault:
            self._faults.append(fault)
