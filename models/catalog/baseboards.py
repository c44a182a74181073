"""GPU baseboards, from baseboards.toml: the number of GPUs for the visible NVSwitches."""

from __future__ import annotations

from functools import cache

import msgspec

from ..site.schema import Few, Text
from . import load


class Baseboard(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One baseboard. A machine may have two."""

    name: str
    source: Text
    switch: str  # vendor and device of its NVSwitches: "10de:22a3"
    switches: Few
    gpus: Few


class _Baseboards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    baseboard: tuple[Baseboard, ...]


@cache
def baseboards() -> tuple[Baseboard, ...]:
    """All known baseboards."""
    return load("baseboards.toml", _Baseboards).baseboard
