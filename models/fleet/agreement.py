"""What the nodes of a machine type agree on, as an entry of the site file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..bandwidth.message_size import full
from ..site.schema import Machine, Op, Rate, Via
from .expressions import FEWEST, LEAST, SIGMAS
from .rows import Measured, measured
from .tables import Fleet

_EQUAL = 0.03  # share by which the rates of one kind of flow may differ, to be one entry
_NUMBERED = re.compile(r"^(gpu|numa)\d+$")
_OPS, _VIAS = frozenset(get_args(Op)), frozenset(get_args(Via))
_Key: TypeAlias = tuple[str, str, tuple[str, ...]]  # operation, medium, patterns of the ends


class _Reached(Struct, frozen=True):
    ends: tuple[str, ...]
    size: float
    low: float
    typical: float


def agreed(fleet: Fleet, catalog: Iterable[Machine]) -> tuple[Machine, ...]:
    """One entry for each machine type with enough nodes: equal counts, and the rates of flows.

    A type of the catalog stays recognised as it is. Another one is recognised by the name of its GPUs.
    """
    known = {machine.name: machine for machine in catalog}
    found = []
    for name, rows in _by_machine(fleet):
        nodes = max(int(row["nodes"]) for row in rows)
        base = known.get(name) or _described(name)
        if nodes < FEWEST or base is None:
            continue
        source = f"{nodes} nodes of this fleet"
        counts = {field: count for field, count in (("gpus", _count(rows)), ("links", _links(rows))) if count}
        rates = tuple(_rates(rows, source))
        found.append(replace(base, source=source, rates=rates or base.rates, **counts))
    return tuple(found)


def _by_machine(fleet: Fleet) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name, frame in fleet.cohorts.groupby("machine", sort=True):
        yield str(name), frame.to_dict("records")


def _described(name: str) -> Machine | None:
    """The entry of a machine type that only its GPUs describe: "8 x NVIDIA H100"."""
    count, _, product = name.partition(" x ")
    if not count.isdigit() or " + " in product:
        return None
    return Machine(name=name, source="", gpu=re.sub(r"([*?[])", r"[\1]", product))


def _count(rows: Sequence[dict[str, Any]]) -> int | None:
    """The number of GPUs, if most nodes have the same."""
    return next((int(row["median"]) for row in rows if row["kind"] == "count" and row["quantity"] == "gpu"), None)


def _links(rows: Sequence[dict[str, Any]]) -> int | None:
    """The number of NVLinks, if it is the same for all GPUs."""
    counts = {int(row["median"]) for row in rows if row["kind"] == "link" and row["quantity"] == "active NVLinks:gpu"}
    return counts.pop() if len(counts) == 1 else None


def _rates(rows: Sequence[dict[str, Any]], source: str) -> Iterator[Rate]:
    """The rates of long single flows. Equal flows are one entry, with shell patterns of their ends."""
    groups: dict[_Key, list[_Reached]] = defaultdict(list)
    for row in rows:
        if row["kind"] != "rate" or row["nodes"] < FEWEST:
            continue
        what, ends = measured(row["quantity"]), tuple(row["position"].split("-"))
        if _fits(what, ends):
            apart = max(LEAST, SIGMAS * row["spread"] / row["median"])
            reached = _Reached(ends, what.size or float("inf"), (1 - apart) * row["median"], row["median"])
            groups[what.op, what.via, tuple(_NUMBERED.sub(r"\1*", end) for end in ends)].append(reached)
    for (op, via, pattern), several in groups.items():
        longest = [one for one in several if one.size == max(other.size for other in several)]
        typical = [one.typical for one in longest]
        if max(typical) <= (1 + _EQUAL) * min(typical):
            yield _rate(op, via, pattern, longest, source)
        else:
            yield from (_rate(op, via, one.ends, [one], source) for one in longest)


def _fits(what: Measured, ends: tuple[str, ...]) -> bool:
    """Whether the site file has a place for it (models/site/schema.py, `Rate`)."""
    long = what.size is None or what.size >= full(what.op)
    return what.op in _OPS and what.via in _VIAS and long and not what.beside and len(ends) <= 2


def _rate(op: str, via: str, ends: tuple[str, ...], several: Sequence[_Reached], source: str) -> Rate:
    low, typical = min(one.low for one in several), median(one.typical for one in several)
    levels = {"low": _rounded(low), "typical": _rounded(typical), "high": _rounded(2 * typical - low)}
    return Rate(op=op, ends=ends, via=via, source=source, **levels)  # type: ignore[arg-type]


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")
