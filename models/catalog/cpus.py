"""Processors, from cpus.toml: what their memory gives, and what joins two of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Literal, TypeAlias

import msgspec

from ..facts.machine import Package
from ..site.schema import Positive, Text
from . import load

AtLeastOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_WIDTH = 8  # bytes that a channel moves in a transfer


class Interconnect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What joins the two packages of a machine."""

    grade: Literal["qpi", "upi", "xgmi-cpu"]
    links: AtLeastOne  # as many as each board has; which ones have more, nothing says
    rate: Positive  # bytes per second of one link in one direction


class Processor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Processors whose memory is equally fast. The first row that fits a package is its own."""

    name: str
    source: Text
    model: str  # a regular expression that is found in the name that the kernel gives: "EPYC 7[0-9A-Z]{2}2"
    beside: str | None = None  # on one board with a GPU product, a shell pattern: names of Arm are those of the core
    up_to: AtLeastOne | None = None  # bytes of memory at a package
    channels: AtLeastOne  # of 64 bits; of narrower ones, as many as make them up
    transfers: Positive  # per second and channel, with one module at each
    memory: Literal["ddr4", "ddr5", "lpddr5x"]
    interconnect: Interconnect | None = None

    @property
    def memory_rate(self) -> float:
        """Bytes per second that all memory of a package gives: all channels filled, with the fastest modules."""
        return self.channels * self.transfers * _WIDTH


class _Cpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cpu: tuple[Processor, ...]


@cache
def processors() -> tuple[Processor, ...]:
    """All that are known, in the order in which they are to be tried."""
    return load("cpus.toml", _Cpus).cpu


def processor_of(package: Package, beside: Collection[str] = (), memory: int | None = None) -> Processor | None:
    """The row of a package, by the names of the GPU products of its machine and the bytes at it; None: not known."""
    for processor in processors():
        if (
            re.search(processor.model, package.model or "")
            and (processor.beside is None or any(fnmatchcase(name, processor.beside) for name in beside))
            and (processor.up_to is None or (memory is not None and memory <= processor.up_to))
        ):
            return processor
    return None
