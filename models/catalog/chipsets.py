"""Bandwidth limits of combinations of switch and processor, from chipsets.toml."""

from __future__ import annotations

from functools import cache

import msgspec

from ..site.schema import Few, Positive, Text
from . import load


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The total rate of GPUs below one switch that write to peers elsewhere, in bytes per second over the uplink."""

    name: Text
    switch: Text  # a shell pattern of the switch's name
    cpu: Text  # a shell pattern of the processor's name
    senders: Few  # minimum number of sending GPUs below one switch
    receivers: Few  # minimum number of other root ports with receiving GPUs
    rate: Positive
    otherwise: Positive  # total rate with fewer senders or receivers
    source: Text


class _Chipsets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: tuple[Limit, ...]


@cache
def limits() -> tuple[Limit, ...]:
    """All known limits."""
    return load("chipsets.toml", _Chipsets).limit
