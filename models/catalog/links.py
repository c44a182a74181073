"""Measurements of links, from links.toml. They determine the share of the rated rate that good machines reach."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

import msgspec

from ..site.schema import Text
from . import load

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published rate of a healthy machine and the rated rate of its limiting links, in bytes per second."""

    grade: str  # of the link, without its width: "pcie4"
    op: str = "copy"  # as Flow.op, or an operation of models/bandwidth/contention.py
    towards: Literal["device", "host", ""] = ""  # away from the processor or towards it, if that matters
    duplex: bool = False  # with equal traffic in the other direction
    rate: Positive
    of: Positive
    floor: bool = False  # a lower bound for healthy links: an operator's threshold, the data sheet of a slow disk
    platform: Text  # measured on; each platform has one vote
    source: Text


class Sized(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rate as a function of message size: the sizes that reach half and nine tenths of the rate."""

    grade: str
    op: str = "copy"
    half: Positive | None = None  # bytes
    ninety: Positive | None = None  # bytes
    latency: Positive | None = None  # seconds for a message of a few bytes
    platform: Text
    source: Text


class Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of links.toml."""

    like: dict[str, str]  # grade without measurements -> most similar grade
    measured: tuple[Measured, ...]
    sized: tuple[Sized, ...]


@cache
def links() -> Links:
    """All measurements of links."""
    return load("links.toml", Links)
