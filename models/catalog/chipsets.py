"""Limits of switches and processors together, from chipsets.toml."""

from __future__ import annotations

from functools import cache

import msgspec

from ..site.schema import Few, Positive, Text
from . import load


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What GPUs below one switch reach together that write to peers elsewhere; bytes per second over its uplink."""

    name: Text
    switch: Text  # a shell pattern of the switch's name
    cpu: Text  # a shell pattern of the processor's
    senders: Few  # from so many below one switch on
    receivers: Few  # to GPUs below so many other root ports
    rate: Positive
    otherwise: Positive  # with fewer
    source: Text


class _Chipsets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: tuple[Limit, ...]


@cache
def limits() -> tuple[Limit, ...]:
    """All that are known."""
    return load("chipsets.toml", _Chipsets).limit
