"""What was measured of links, from links.toml: the shares of their rated rate that good machines reach."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

import msgspec

from ..site.schema import Text
from . import load

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published rate of a healthy machine, beside what the links that set it are rated at; bytes per second."""

    grade: str  # of the link, without its width: "pcie4"
    op: str = "copy"  # as in Flow.op; what else there is, models/bandwidth/contention.py tells
    towards: Literal["device", "host", ""] = ""  # away from the processor or to it, where that matters
    duplex: bool = False  # while as much goes the other way
    rate: Positive
    of: Positive
    floor: bool = False  # healthy ones give at least that: an operator's threshold, the data sheet of a slow disk
    platform: Text  # measured on: one vote each
    source: Text


class Sized(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the rate grows with the size of a message: the sizes at which half of it and nine tenths are reached."""

    grade: str
    op: str = "copy"
    half: Positive | None = None  # bytes
    ninety: Positive | None = None  # bytes
    latency: Positive | None = None  # seconds that a message of a few bytes takes
    platform: Text
    source: Text


class Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole of links.toml."""

    like: dict[str, str]  # of a grade that nobody measured, the one that is nearest to it
    measured: tuple[Measured, ...]
    sized: tuple[Sized, ...]


@cache
def links() -> Links:
    """What was measured of links."""
    return load("links.toml", Links)
