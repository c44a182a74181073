"""Expressions that are compiled when they are first needed: a reader has many, and a start of the program needs few."""

from __future__ import annotations

import re
from functools import cache


@cache
def ignoring_case(text: str) -> re.Pattern[str]:
    """The expression, compiled. Letters of both cases match."""
    return re.compile(text, re.IGNORECASE)
