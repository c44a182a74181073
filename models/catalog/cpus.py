"""Processors, from cpus.toml: memory bandwidth, and the links between two processors."""

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
_WIDTH = 8  # bytes per transfer of a channel


class Interconnect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The links between the two packages of a machine."""

    grade: Literal["qpi", "upi", "xgmi-cpu"]
    links: AtLeastOne  # the number that every board has; some boards have more
    rate: Positive  # bytes per second of one link in one direction


class Processor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Processors with equal memory bandwidth. The first matching row applies to a package."""

    name: str
    source: Text
    model: str  # a regular expression, searched in the kernel's model name: "EPYC 7[0-9A-Z]{2}2"
    # GPU product on the same board, a shell pattern: an Arm model name is only that of the core
    beside: str | None = None
    up_to: AtLeastOne | None = None  # largest memory of a package in bytes
    channels: AtLeastOne  # 64-bit channels; narrower channels are combined
    transfers: Positive  # per second and channel, with one module per channel
    memory: Literal["ddr4", "ddr5", "lpddr5x"]
    interconnect: Interconnect | None = None

    @property
    def memory_rate(self) -> float:
        """Memory bandwidth of a package in bytes per second, with all channels filled with the fastest modules."""
        return self.channels * self.transfers * _WIDTH


class _Cpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cpu: tuple[Processor, ...]


@cache
def processors() -> tuple[Processor, ...]:
    """All known processors, in the order in which they are tried."""
    return load("cpus.toml", _Cpus).cpu


def processor_of(package: Package, beside: Collection[str] = (), memory: int | None = None) -> Processor | None:
    """The row for a package; None: unknown. `beside` are the machine's GPU products, `memory` is in bytes."""
    for processor in processors():
        if (
            re.search(processor.model, package.model or "")
            and (processor.beside is None or any(fnmatchcase(name, processor.beside) for name in beside))
            and (processor.up_to is None or (memory is not None and memory <= processor.up_to))
        ):
            return processor
    return None
