"""Measurements of collectives, from collectives.toml: startup times, and rates between nodes."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal, TypeAlias

import msgspec

from ..site.schema import Few, Positive, Text
from . import load

Power: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Collective(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One published curve, or one number from it. collectives.toml defines the fields."""

    op: Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"]
    way: Literal["ring", "in-network", "direct"]  # algorithm inside a node
    grade: Text  # of the GPU links inside a node: "nvlink4"
    ranks: Few
    nodes: Few = 1
    rate: Positive  # bytes per second that one GPU can send; with several nodes, that one node can send
    bus: Positive | None = None  # bus bandwidth of long messages, bytes per second
    startup: Positive | None = None  # seconds
    power: Power | None = None
    latency: Positive | None = None  # seconds of the smallest message
    platform: Text  # measured on; each platform has one vote
    machines: tuple[Text, ...] = ()  # machine types (platforms.toml) for which this row replaces those of other types
    source: Text


class _Collectives(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collective: tuple[Collective, ...]


@cache
def collectives() -> tuple[Collective, ...]:
    """All known measurements."""
    return load("collectives.toml", _Collectives).collective
