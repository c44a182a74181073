"""What can be asked: a function that says what it finds on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..models.said import Said
from ..probes.host import Host

Source: TypeAlias = Callable[[Host], Iterable[Said]]


def name_of(source: Source) -> str:
    """What a source is called in runs and metrics: its function's name without "read_"."""
    inner = getattr(source, "func", source)
    return str(getattr(inner, "__name__", type(inner).__name__)).removeprefix("read_")
