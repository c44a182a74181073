"""What was measured of collectives, from collectives.toml: how they begin, and what they reach from node to node."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal, TypeAlias

import msgspec

from ..site.schema import Few, Positive, Text
from . import load

Power: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Collective(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One published curve, or one number of it. collectives.toml tells what each field means."""

    op: Literal["all_reduce", "alltoall"]
    way: Literal["ring", "in-network", "direct"]  # inside a node
    grade: Text  # of the links between the GPUs of a node: "nvlink4"
    ranks: Few
    nodes: Few = 1
    rate: Positive  # bytes per second that a GPU, with several nodes that a node can send
    bus: Positive | None = None  # bytes per second of bus bandwidth of long messages
    startup: Positive | None = None  # seconds
    power: Power | None = None
    latency: Positive | None = None  # seconds of the smallest message
    platform: Text  # measured on: one vote each
    source: Text


class _Collectives(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collective: tuple[Collective, ...]


@cache
def collectives() -> tuple[Collective, ...]:
    """All that are known."""
    return load("collectives.toml", _Collectives).collective
