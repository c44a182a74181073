"""Rows of TCP tests between hosts: "| host-a -> host-b | 9.83 Gbits/sec, 10654 retransmits |".

The retransmits show that the rate is one of TCP, so the ends are hosts whatever their names are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.network_paths import NodePair
from ...parsing.expressions import ignoring_case
from ..core.part import Part
from .rows import factor_of
from .words import NUMBER, UNIT

_HOST = r"[A-Za-z0-9][\w.-]{0,62}"
_MARK = r"[ \t|*`]{0,12}"
_ENDS = (
    rf"{_MARK}(?P<a>{_HOST}){_MARK}(?:-{{1,2}}>|→|=>|to){_MARK}(?P<b>{_HOST})[ \t|*`:,]{{1,12}}(?:tcp[ :=|]{{1,3}})?"
)
_COUNT = (
    r"(?:[0-9,]{1,9}[*`]?[ ](?:tcp )?retr(?:ansmit(?:s|ted|ssions)?|ans|ies|y|s)?(?![\w])|retr\w{0,12}[ :=]{1,3}[0-9])"
)
_ROW = rf"{_ENDS}(?P<rate>{NUMBER})[ ]?(?P<unit>{UNIT})[ \t|*`,;(]{{1,12}}{_COUNT}"
BEGIN = rf"^(?i:(?={re.sub(r'[(][?]P<[a-z]+>', '(?:', _ROW)})[^\n]{{0,160}}?{UNIT})"


def host_pairs(part: Part) -> Iterator[tuple[int, NodePair]]:
    """The best rate of each pair, with the number of its line."""
    best = dict[str, tuple[int, NodePair]]()
    for number, line in part.lines():
        found = ignoring_case(_ROW).match(line)
        factor = factor_of(found["unit"]) if found else None
        if found and factor and found["a"] != found["b"]:
            key, rate = f"{found['a']}-{found['b']}", float(found["rate"].replace(",", ".")) * factor
            if key not in best or rate > (best[key][1].rate or 0):
                pair = NodePair(key=key, a=found["a"], b=found["b"], rate=rate, cites={"rate": part.cite(number, line)})
                best[key] = number, pair
    yield from best.values()
