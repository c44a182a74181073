"""Rates in prose: "node3: 180 Gb/s, others 370", and lists in one line: "node1 370 Gb/s, node2 371 Gb/s"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ....models.facts.network_paths import NodePair
from ....models.facts.records import Evidence
from ..core.part import Part
from .rate_rows import factor_of
from .rate_words import BETWEEN, CELLS, NIC, NODE, NUMBER, NUMBERED_NODE, RATED, UNIT, is_device

_KINDS = "nodes|hosts|machines|servers"
_OTHERS = (
    rf"(?:(?:all|the|every)[ ]){{0,2}}(?:other[ ](?:(?P<kind>{_KINDS})|adapters|nics|rails|hcas|ports|ones)|others|rest"
    rf"|(?:all|most)[ ](?:nodes|hosts|machines|servers|adapters|nics|rails))(?![\w])"
)
_FILL = (
    r"(?:[ ]?(?:[:=(~≈*`]|(?:is|was|are|at|gets?|got|reach(?:es|ed)?|ha[sd]|have|only|just|about|around|runs?|shows?"
    r"|achieves?|with|all|which|that|delivers?|of|the|nodes)(?![\w]))){0,6}[ ]?"
)
_PRODUCTS = r"(?!gpu[0-9]|cuda|dev|numa|cpu|rtx|gtx|gen|pcie|connectx)"
_NAME = rf"(?<![\w.-])(?P<name>{NUMBERED_NODE}|{NIC}|{_PRODUCTS}{NODE})(?![\w])"
_GAP = r"[^\n0-9]{0,60}?"
_OWN = rf"(?P<own>{NUMBER})(?:[ ]?(?P<unit>{UNIT}))?(?![\w%])"
_USUAL = rf"(?P<usual>{NUMBER})(?:[ ]?(?P<other>{UNIT}))?(?![\w%])"
_FIRST = rf"{_NAME}{_FILL}{_OWN}{_GAP}(?<![\w-]){_OTHERS}{_FILL}{_USUAL}"
_LAST = rf"(?<![\w-]){_OTHERS}{_FILL}{_USUAL}{_GAP}{_NAME}{_FILL}{_OWN}"
# What names of machines contain; other words with a number can be those of products
_MACHINE = re.compile(r"(?i:node|host|server|machine|worker|compute|[dh]gx|gpu-|rack|srv|rail)|(?:[0-9]{1,3}\.){3}")

_PLAIN_NAME = rf"(?:{NUMBERED_NODE}|{NIC}|{NODE})"
_ENTRY = rf"{_PLAIN_NAME}(?:{BETWEEN}{_PLAIN_NAME})?{CELLS}{RATED}"
_FEWEST = 3  # entries of a list


def _unnamed(text: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", text)


# The lines with which such a text begins
SPOKEN = rf"[^\n]{{0,200}}?(?:{_unnamed(_FIRST)}|{_unnamed(_LAST)})"
LISTED = rf"[^\n]{{0,80}}?(?<![\w.]){_ENTRY}(?:[ ]?[,;|][ ]?{_ENTRY}){{2}}"


@cache
def _claims() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for text in (_FIRST, _LAST))


@cache
def _entries() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?:{_ENTRY})", re.IGNORECASE)


def entries(line: str) -> list[str]:
    """The rows of a list in one line; any other line as it is."""
    found = list(_entries().finditer(line))
    if len(found) < _FEWEST:
        return [line]
    between = (line[a.end() : b.start()] for a, b in zip(found, found[1:], strict=False))
    return [one[0] for one in found] if all(text.strip() in (",", ";", "|") for text in between) else [line]


def claims(part: Part) -> Iterator[NodePair]:
    """A node or adapter whose rate the text compares with that of all others."""
    for number, line in part.lines():
        for pattern in _claims():
            found = pattern.search(line[:600])
            if found and (pair := _pair(found, part.cite(number, line))):
                yield pair
                break


def _pair(found: re.Match[str], cite: Evidence) -> NodePair | None:
    name, unit = found["name"], found["unit"] or found["other"] or ""
    factor, of_others = factor_of(unit), factor_of(found["other"] or unit)
    if factor is None or of_others is None or not (is_device(name) or found["kind"] or _MACHINE.search(name)):
        return None
    return NodePair(
        key=name,
        a=None if is_device(name) else name,
        rate=_number(found["own"]) * factor,
        others=_number(found["usual"]) * of_others,
        cites={"rate": cite, "others": cite},
    )


def _number(text: str) -> float:
    return float(text.replace(",", "."))
