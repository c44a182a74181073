"""Waiting for something that comes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(true: Callable[[], bool]) -> None:
    """Until it is so; a minute at most, on however slow a machine."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
