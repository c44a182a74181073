"""Tables of message sizes with a column of rates for each configuration: before and after a change, two machines.

"| size | HEAD | with this fix | ratio |" over "| 1 MiB | 14.80 GB/s | 35.90 | 2.4x |". The columns measure the same, so
at the largest size the slower one is compared with the faster one. Columns of times and counts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....models.facts.network_paths import EXPECTED, NodePair
from ...parsing.expressions import ignoring_case
from ..core.part import Part
from .rows import factor_of
from .words import UNIT

_SIZE = r"[0-9]{1,5}(?:\.[0-9])?[ ]?[KMG]i?B?"
_APART = r"(?:[ ]{0,40}\|[ ]{0,40}|[ ]{2,40}|\t{1,4})"
_CELLS = rf"(?:{_APART}[^\s|]{{1,40}}(?:[ ][^\s|]{{1,40}}){{0,7}}){{2,8}}[ \t|]{{0,40}}"
_HEADING = rf"[ \t|]{{0,8}}(?:(?:message|msg|buffer|data|transfer)[ ])?size(?:[ ]?[(\[]\w{{1,6}}[)\]])?{_CELLS}"
_ROW = rf"[ \t|]{{0,8}}{_SIZE}{_CELLS}"
_RULE = r"(?:[ |:+=-]{3,200}\n)?"
_RATED = rf"(?=[^\n]{{0,200}}(?<![A-Za-z]){UNIT}(?![\w]))"
BEGIN = rf"^(?i:(?={_HEADING}\n{_RULE}{_ROW}$)(?:{_RATED}|(?=[^\n]{{1,300}}\n{_RULE}{_RATED}))[^\n]{{0,20}}?size)"
_OTHER = (  # columns that are no rates, or that count something else
    r"\btime|\blat|usec|\bus\b|ratio|speed-?up|gain|iter|count|type|redop|root|wrong|#|%|(?<![a-z])x$|diff|delta"
    r"|nodes?|gpus?|ranks?|reduce|gather|scatter|all ?to ?all|h2d|d2h|\bread|write|algbw|expected|theor|peak"
)
_RATE = rf"[*`~ ]{{0,4}}([0-9]{{1,5}}(?:\.[0-9]{{1,3}})?)[ ]?({UNIT})?[*` ]{{0,4}}"
_FAR = 0.5  # two configurations of healthy machines differ less


def comparisons(part: Part) -> Iterator[tuple[int, NodePair]]:
    """A pair for each table whose slowest column is far below the fastest one. Each with the number of its row."""
    names: Sequence[str] = ()
    last: tuple[int, str] | None = None
    for number, line in part.lines():
        if ignoring_case(_HEADING).fullmatch(line):
            names, last = _cells(line), None
        elif names and ignoring_case(_ROW).fullmatch(line):
            last = number, line
        elif names and any(map(str.isalnum, line)):
            yield from _pair(part, names, last)
            names = ()
    yield from _pair(part, names, last)


def _pair(part: Part, names: Sequence[str], last: tuple[int, str] | None) -> Iterator[tuple[int, NodePair]]:
    """The slowest and the fastest column of the last row, which has the largest size."""
    if last is None:
        return
    number, line = last
    found = (
        ignoring_case(_RATE).fullmatch(cell)
        for name, cell in zip(names[1:], _cells(line)[1:], strict=False)
        if not ignoring_case(_OTHER).search(name)
    )
    text = part.text
    unit = next((one[0] for one in ignoring_case(rf"(?<![A-Za-z]){UNIT}(?![\w])").finditer(text)), "")
    rates = [float(one[1]) * (factor_of(one[2] or unit) or 0.0) for one in found if one]
    if len(rates) > 1 and 0 < min(rates) < _FAR * max(rates):
        cite = part.cite(number, line)
        yield number, NodePair(key=EXPECTED, rate=min(rates), others=max(rates), cites={"rate": cite, "others": cite})


def _cells(line: str) -> list[str]:
    return re.split(_APART, line.strip(" \t|"))
