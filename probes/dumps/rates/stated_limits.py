"""A rate and its limit in two lines: "Theoretical: 400 Gb/s", "Measured: 124 Gb/s"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from ....models.facts.network_paths import EXPECTED, NodePair
from ....models.facts.records import Evidence
from ...parsing.expressions import ignoring_case
from ..core.part import Part
from .rows import factor_of
from .words import NUMBER, UNIT

_LIMIT = (
    r"(?:theoretical|possible|expected|nominal|line[ -]?rate|spec(?:ified|ification)?|advertised|ideal|target"
    r"|erwartet\w{0,2}|theoretisch\w{0,2}|理论|预期|期望|标称|теоретическ\w{1,3}|ожида\w{2,5}|期待|理論)"
)
_SEEN = (
    r"(?:observed|measured|actual(?:ly)?|achieved|obtained|real|gemessen\w{0,2}|tatsächlich\w{0,2}|实测|实际|测得"
    r"|измерен\w{1,3}|фактическ\w{1,3}|実測)"
)
_VALUE = rf"[^\n:=|]{{0,80}}[:=|：][ *~≈`]{{0,4}}{NUMBER}[ ]?{UNIT}(?![\w%])"
# Words that say which rate it is. Two rates with different ones are not compared.
_WHICH = (
    r"nvlink|pcie?|memory|hbm|dram|network|disk|storage|total|aggregate|sum|bi-?dir\w{0,10}|uni-?dir\w{0,10}|h2d|d2h"
    r"|before|\d{1,4} ?[km]i?b"
)
_NEAR = 4  # lines between a rate and its limit
LIMITED = (
    rf"[^\n:=|]{{0,60}}(?<!\w){_LIMIT}{_VALUE}[^\n]{{0,80}}\n(?:[^\n]{{0,200}}\n){{0,{_NEAR - 1}}}"
    rf"[^\n:=|]{{0,60}}(?<!\w){_SEEN}{_VALUE}"
)
_LINE = (
    rf"[^\n:=|]{{0,60}}(?<!\w)(?:(?P<limit>{_LIMIT})|(?P<seen>{_SEEN}))(?P<name>[^\n:=|]{{0,80}})[:=|：]"
    rf"[ *~≈`]{{0,4}}(?P<number>{NUMBER})[ ]?(?P<unit>{UNIT})(?![\w%])"
)


class _Stated(Struct, frozen=True):
    """A rate in bytes per second, with its line and its evidence."""

    kind: Literal["limit", "seen"]
    which: frozenset[str]
    rate: float
    number: int
    cite: Evidence


def limited(part: Part) -> Iterator[tuple[int, NodePair]]:
    """The highest of the measured rates near each limit, if it is below it, with the number of its line, from 0."""
    limit: _Stated | None = None
    best: dict[int, tuple[_Stated, _Stated]] = {}
    for one in _stated(part):
        if one.kind == "limit":
            limit = one
        elif limit and one.number - limit.number <= _NEAR and one.which == limit.which:
            known = best.get(limit.number)
            best[limit.number] = (one, limit) if known is None or one.rate > known[0].rate else known
    for seen, of in best.values():
        if seen.rate < of.rate:
            cites = {"rate": seen.cite, "others": of.cite}
            yield seen.number, NodePair(key=EXPECTED, rate=seen.rate, others=of.rate, cites=cites)


def _stated(part: Part) -> Iterator[_Stated]:
    for number, line in part.lines():
        found = ignoring_case(_LINE).match(line[:400])
        factor = factor_of(found["unit"]) if found else None
        if found and factor:
            seen = found["seen"] or ignoring_case(rf"(?<!\w){_SEEN}").search(found["name"])
            value = float(found["number"].replace(",", ".")) * factor
            label = line[: found.start("number")].lower()
            if re.search(r"loss|latency", label):
                continue
            which = frozenset(ignoring_case(rf"(?<!\w)(?:{_WHICH})(?!\w)").findall(label))
            yield _Stated("seen" if seen else "limit", which, value, number, part.cite(number, line))
