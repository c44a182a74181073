"""The share of a link's rated rate that a good copy reaches. Packet headers, flow control and engines take the rest.

The shares are computed from measurements of healthy machines (catalog/links.toml). Typical is the median over the
machines. Low and high are the extremes plus a margin, which is wider with fewer machines. So a further measurement
corrects the share. A test can leave out each measurement and compare it with the share from the others.

Two known formulas bracket every good PCIe measurement that we found. NCCL plans with width x {1.5, 3, 6, 12, 24, 48}/8
GB/s per lane (src/graph/topo.cc). UCX uses rated x 256*4/((256+26)*4+16), which is 89.5 % (src/ucs/sys/topo/base).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.links import Links, Measured, links
from ..facts.averages import median

# Margins beyond the extremes for one, two, three and more machines. With them, nine of ten measured rates are inside
# the interval that the other machines give (bench/accuracy/model_accuracy.py). For one machine, high/low is 1.35.
_MARGINS = (0.15, 0.10, 0.03)
_MEMORIES = {"hbm", "gddr", "lpddr"}  # grades of GPU memory
_SAME = 0.01  # data sheets round the rate of a memory
_OTHER_PRODUCT = 0.9  # factor on the low, and its inverse on the high, of other products of the same memory
_BORROWED = 0.8  # the same for another grade or operation
# The most similar operations for one without measurements, best first. Operations on memories and disks have none.
_CLOSE = {
    "copy-far": ("copy",),
    "through": ("copy",),
    "staged": ("copy",),
    "send": ("write", "copy"),
    "write": ("send",),
    "loopback": ("copy",),
    "all_gather": ("all_reduce",),
    "reduce_scatter": ("all_reduce",),
    "broadcast": ("all_gather", "all_reduce"),
}
_NETWORK = {"write", "read", "send"}  # over PCIe these are copies by the NIC's engine
ABOVE_THE_WIRE = {"all_reduce-nvls"}  # bus bandwidth of reductions in the switches; it is no rate of a link


class Attainable(Struct, frozen=True):
    """Shares of the rated rate that a copy reaches, and their source. Below `low` something is wrong."""

    low: float
    typical: float
    high: float
    source: str


def family(grade: str) -> str:
    """The grade without its width, which does not change the share: "pcie4" for "pcie4x8"."""
    return re.sub(r"^(pcie\d+)x\d+$", r"\1", grade)


def attainable(
    grade: str,
    op: str = "copy",
    towards: str = "",
    duplex: bool = False,
    known: Links | None = None,
    rated: float | None = None,
) -> Attainable | None:
    """The shares for links of a grade ("pcie4x16") and an operation, towards "device" or "host"; None: not published.

    Without a measurement of exactly this case the nearest is used: one direction instead of both, a similar operation,
    a similar grade. The interval of a substitute is wider. `rated` is the rate of a memory: it tells the
    product.
    """
    rated = rated if grade in _MEMORIES else None
    return _search(grade, op, towards, duplex, known, rated) if known else _packaged(grade, op, towards, duplex, rated)


@lru_cache(maxsize=1024)
def _packaged(grade: str, op: str, towards: str, duplex: bool, rated: float | None) -> Attainable | None:
    return _search(grade, op, towards, duplex, links(), rated)


def _search(grade: str, op: str, towards: str, duplex: bool, catalog: Links, rated: float | None) -> Attainable | None:
    seen = set[str]()
    tried = family(grade)
    while tried and tried not in seen:
        seen.add(tried)
        for nearest, close in _operations(tried, op):
            rows = _rows(catalog.measured, tried, nearest, towards, duplex)
            if rows:
                found = _of_product(rows, rated, nearest)
                return found if close and tried == family(grade) else _borrowed(found, tried, nearest, grade, op)
        tried = catalog.like.get(tried, "")
    return None


def _operations(grade: str, op: str) -> Iterable[tuple[str, bool]]:
    """The operation and its substitutes, each with a flag: true if it counts as the operation itself."""
    yield op, True
    if grade.startswith("pcie") and op in _NETWORK:
        yield "copy", True
    for other in _CLOSE.get(op, ()):
        yield other, False


def _rows(measured: Iterable[Measured], grade: str, op: str, towards: str, duplex: bool) -> list[Measured]:
    """The measurements of this direction. With `duplex`, those with both directions at once, if there are any."""
    matching = [row for row in measured if row.grade == grade and row.op == op]
    same_direction = [row for row in matching if row.towards in ("", towards)] or ([] if towards else matching)
    return [row for row in same_direction if row.duplex == duplex] or [row for row in same_direction if not row.duplex]


def _of_product(rows: list[Measured], rated: float | None, op: str) -> Attainable:
    """The shares of the same GPU product, by the rated rate of its memory. A product without measurements gets the
    shares of the others, with a wider interval.
    """
    same = [row for row in rows if rated and abs(row.of / rated - 1) < _SAME]
    if any(not row.floor for row in same):
        return _interval(same, op)
    if rated is None or same:
        return _interval(rows, op)
    found = _interval([row for row in rows if not row.floor] or rows, op)
    return _wider(found, _OTHER_PRODUCT)


def _interval(rows: list[Measured], op: str) -> Attainable:
    shares = defaultdict[str, list[float]](list)
    for row in rows:
        shares[row.platform].append(row.rate / row.of)
    margin = _MARGINS[min(len(shares), len(_MARGINS)) - 1]
    every = [share for several in shares.values() for share in several]
    floors = {row.platform for row in rows if row.floor}
    usual = [median(several) for platform, several in shares.items() if platform not in floors]
    high = max(every) * (1 + margin) if usual else 1.0  # a floor does not limit the maximum
    return Attainable(
        low=min(every) * (1 - margin),
        typical=median(usual or [max(every)]),
        high=high if op in ABOVE_THE_WIRE else min(1.0, high),
        source=_source(rows),
    )


def interval(shares: Mapping[str, Sequence[float]], source: str) -> Attainable:
    """The interval of measured shares by platform."""
    margin = _MARGINS[min(len(shares), len(_MARGINS)) - 1]
    every = [share for several in shares.values() for share in several]
    usual = median([median(several) for several in shares.values()])
    return Attainable(min(every) * (1 - margin), usual, min(1.0, max(every) * (1 + margin)), source)


def _source(rows: list[Measured]) -> str:
    seen = {row.platform: row for row in reversed(rows)}
    told = [
        f"{row.platform} {'at least ' * row.floor}{row.rate / 1e9:.4g} of {row.of / 1e9:.4g}"
        for row in reversed(seen.values())
    ]
    more = f" and {len(told) - 2} more" if len(told) > 2 else ""
    return f"GB/s measured: {', '.join(told[:2])}{more}"


def _borrowed(found: Attainable, grade: str, op: str, wanted: str, wanted_op: str) -> Attainable:
    source = f"none is published of {wanted_op} over {wanted}; of {op} over {grade} {found.source}"
    return replace(_wider(found, _BORROWED), source=source)


def _wider(found: Attainable, factor: float) -> Attainable:
    """For extrapolation. Bus bandwidth of reductions in switches may be above the rated rate."""
    return replace(found, low=found.low * factor, high=min(max(1.0, found.high), found.high / factor))
