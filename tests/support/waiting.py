"""Waiting for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(true: Callable[[], bool]) -> None:
    """Wait until the condition holds, at most a minute."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def with_deadline(ask: Callable[[float], list[T]], answers: int) -> tuple[float, list[T]]:
    """A deadline in which so many answers came, and the answers. A busy machine may need a longer one."""
    for seconds in (1.0, 5.0, 25.0):
        results = ask(seconds)
        if len(results) >= answers:
            break
    return seconds, results
