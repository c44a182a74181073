"""Baseboards of GPUs, from baseboards.toml: how many GPUs stand beside the NVSwitches that are seen."""

from __future__ import annotations

from functools import cache

import msgspec

from ..site.schema import Few, Text
from . import load


class Baseboard(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One baseboard. A machine may have two of them."""

    name: str
    source: Text
    switch: str  # vendor and device of its NVSwitches: "10de:22a3"
    switches: Few
    gpus: Few


class _Baseboards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    baseboard: tuple[Baseboard, ...]


@cache
def baseboards() -> tuple[Baseboard, ...]:
    """All baseboards that are known."""
    return load("baseboards.toml", _Baseboards).baseboard
