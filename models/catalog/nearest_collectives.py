"""The measurements of collectives that are nearest to a machine, and their medians."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..facts.averages import median
from .collectives import Collective, Transport

# Startup of an AllReduce between nodes, of an AllGather: 0.8 on B200 of Vultr, 1.2 on MI250X, 2.1 on A3 High.
_REDUCED = 1.2
_TIMES = (3e-6, 300e-6)  # seconds of a step at the rate of long messages


class Nearest(Struct, frozen=True):
    """The links and the machine type that the parameters are for.

    Inside a node the grade of the links decides, between nodes the transport. Without a grade all links are equally
    near.
    """

    grade: str
    machine: str
    transport: Transport | None = None
    library: str | None = None  # between nodes: RCCL starts otherwise than NCCL

    def nearest(self, rows: Sequence[Collective]) -> Sequence[Collective]:
        """Rows of the machine type; else of the grade or transport, of the kind of links, or all."""
        kind = self.grade.rstrip("0123456789")
        ours = self.of_machine(rows)
        carried = self.of_transport(rows)
        alike = [one for one in rows if one.grade == self.grade]
        near = [one for one in rows if one.grade.rstrip("0123456789") == kind]
        return next((some for some in (ours, carried, alike, near) if some), rows)

    def first(self, kinds: Iterable[Sequence[Collective]]) -> Sequence[Collective]:
        """Rows of the first kind that has any of the machine type; else of the transport and the library; else of the
        transport; else all of the first kind.
        """
        several = [each for each in kinds if each]
        nearer = (self.of_machine, self.of_library, self.of_transport)
        found = (some for nearest in nearer for each in several if (some := nearest(each)))
        return next(found, several[0] if several else ())

    def of_machine(self, rows: Sequence[Collective]) -> Sequence[Collective]:
        """Rows that were measured on this machine type."""
        return [one for one in rows if self.machine and self.machine in one.machines]

    def of_library(self, rows: Sequence[Collective]) -> Sequence[Collective]:
        """Rows whose messages between nodes are carried as here, by the same library."""
        carried = (one for one in rows if one.transport == self.transport)
        return [one for one in carried if self.library in (None, library_of(one.grade))]

    def of_transport(self, rows: Sequence[Collective]) -> Sequence[Collective]:
        """Rows whose messages between nodes are carried as here, of the same library if there are any."""
        return self.of_library(rows) or [one for one in rows if one.transport == self.transport]


def library_of(grade: str) -> str:
    """The library of collectives for GPUs with such links."""
    return "RCCL" if grade.startswith("xgmi") else "NCCL"


def converted(one: Collective, gather: bool, way: Literal["ring", "in-network"]) -> Collective:
    """A row of an AllReduce, or with `gather` of an AllGather, in place of a row of the other operation."""
    if (one.op == "all_reduce") != gather:
        return replace(one, way=way)
    factor = 1 / _REDUCED if gather else _REDUCED
    times = {"startup": one.startup and one.startup * factor, "latency": one.latency and one.latency * factor}
    wanted: Literal["all_reduce", "all_gather"] = "all_gather" if gather else "all_reduce"
    return replace(one, op=wanted, way=way, bus=None if one.once else one.bus, once=False, **times)


def median_of(rows: Iterable[Collective], value: Callable[[Collective], float | None], default: float) -> float:
    """The median over platforms; each platform has one vote."""
    return median(votes_of(rows, value) or [default])


def votes_of(rows: Iterable[Collective], value: Callable[[Collective], float | None]) -> list[float]:
    """The median of each platform."""
    votes = defaultdict[str, list[float]](list)
    for one in rows:
        votes[one.platform].append(value(one) or 0.0)
    return [median(several) for several in votes.values()]


def startup_of(rows: Sequence[Collective], times: Callable[[Collective], float]) -> tuple[float, float]:
    """T of one step, and p, of the curve through the medians of T^p x^(1-p) at two times x: T and p of one platform
    belong together. `times` is the number of startups of a row.
    """
    if not rows:
        return 0.0, 1.0

    def begun(ideal: float) -> float:
        return median_of(rows, lambda one: _begun(one, times(one), ideal), 0.0)

    short, long = map(begun, _TIMES)
    power = 1 - math.log(long / short) / math.log(_TIMES[1] / _TIMES[0])
    power = min(1.0, max(power, 0.05))
    return (short / _TIMES[0] ** (1 - power)) ** (1 / power), power


def _begun(one: Collective, steps: float, ideal: float) -> float:
    power = one.power or 1.0
    return float(((one.startup or 0.0) / steps) ** power * ideal ** (1 - power))
