"""Lines that say something once for several rates, as rows that say all of it.

"H2D: GPU0 55.2 GB/s, GPU1 55.1" is two rows. "gpu0 -> gpu1: 48 GB/s (was 245)" is a row with "before" and "after".
"""

from __future__ import annotations

import re

from ...parsing.expressions import ignoring_case
from .words import END, NODE, NUMBER, PATH, PROGRAM, UNIT, words

_LINK = r"[ ]?(?:<?-{1,2}>|→|↔|<>)[ ]?"
_VALUE = rf"(?P<number>{NUMBER})(?:[ ]?(?P<unit>{UNIT}))?(?![\w.]|[ ]?{UNIT})"
_BETWEEN = r"[ \t]?[ \t:=|][ \t]?"
_ENTRY = (
    rf"(?<![\w.:>-])(?P<ends>{END}{_LINK}{END}|{END}|[0-9]{{1,3}}{_LINK}[0-9]{{1,3}}|{PATH})(?![\w])"
    rf"{_BETWEEN}{_VALUE}"
)
_FEWEST = 2  # entries of a list
_PEERS = re.compile(r"(?i:p2p|peers?|nvlink|gpus?)(?![\w])")
# The line is about copies at the same time, or before and after a change: it is one row.
_ONE_ROW = frozenset({"each", "sum", "also", "beside", "before", "after", "together", "least", "wanted"})
_OWN = frozenset({"number", "gpu", "nic", "numa", "disk", "name", "size", "unit", "arrow", "path", "address"})
_EARLIER, _LATER = r"(?:before|was|previously|earlier|old)", r"(?:after|now|later|new)"
_CLAUSE = rf"(?:[ ](?!{_EARLIER}|{_LATER})[a-z]{{2,12}}){{0,3}}[ ]?[:=]?[ ]?[~≈]?[ ]?"


def rows_of(line: str) -> list[str]:
    """The rows of a line."""
    line = ignoring_case(rf"^([ \t|*>`-]{{0,8}}){PROGRAM}[ \t|:,]{{1,4}}(?=(?:{END}|{NODE})(?![\w]))").sub(r"\1", line)
    line = _with_expected_unit(_with_change(line))
    return _listed(line) or [line]


def _listed(line: str) -> list[str]:
    """The rows of a list of ends with numbers. Words outside of the entries are about all of them. Empty: no list."""
    found = list(ignoring_case(_ENTRY).finditer(line))
    units = {one["unit"] for one in found if one["unit"]}
    rest = ignoring_case(_ENTRY).sub(" ", line).strip(" \t,;|")
    if not units:  # one unit for all of them, before or behind them
        units = {one[0] for one in ignoring_case(rf"(?<![\w]){UNIT}(?![\w])").finditer(rest)}
        rest = ignoring_case(rf"(?<![\w]){UNIT}(?![\w])").sub("", rest)
    known = words(rest) if rest.strip(" \t,;:()[]|") else ()
    if len(found) < _FEWEST or len(units) != 1 or known is None:
        return []
    kinds = {word.kind for word in known}
    if kinds & (_ONE_ROW | _OWN) or "+" in rest or "&" in rest:
        return []
    (unit,) = units
    ends = [_ends(one["ends"], bool(_PEERS.search(rest))) for one in found]
    return (
        [f"{rest} {name}: {one['number']} {unit}" for name, one in zip(ends, found, strict=True)] if all(ends) else []
    )


def _ends(text: str, peers: bool) -> str:
    """The ends of an entry. Bare numbers are GPUs if the line says that it is about peers; else empty."""
    if not text[0].isdecimal() or ":" in text:
        return text
    return re.sub(r"[0-9]+", lambda number: f"gpu{number[0]}", text) if peers else ""


def _with_change(line: str) -> str:
    """The line with "before" and "after" in front of their rates."""
    value = rf"{NUMBER}(?:[ ]?{UNIT})?(?![\w.]|[ ]?{UNIT})"
    rate = rf"(?<![\w.])(?P<own>{NUMBER}[ ]?(?P<unit>{UNIT}))(?![\w])"
    for word, earlier in ((_EARLIER, True), (_LATER, False)):
        found = ignoring_case(
            rf"{rate}[ ]?(?:\(|\[|,[ ]|;[ ])[ ]?{word}{_CLAUSE}(?P<other>{value})[ ]?[)\]]?[ ]*$"
        ).search(line)
        if found and not ignoring_case(rf"(?<![\w-])(?:{_EARLIER}|{_LATER})(?![\w])").search(line[: found.start()]):
            other = found["other"] if found["other"][-1].isalpha() else f"{found['other']} {found['unit']}"
            first, last = (other, found["own"]) if earlier else (found["own"], other)
            return f"{line[: found.start()]}before {first} after {last}"
    return _repeated(line)


def _repeated(line: str) -> str:
    """The line with its device once: "before: mlx5_0 392 Gb/s, after: mlx5_0 196 Gb/s"."""
    device = rf"(?P<end>{END}(?:{_LINK}{END})?)[ :=]{{1,3}}"
    first, last = (rf"(?P<{name}>{NUMBER}[ ]?{UNIT})" for name in ("first", "last"))
    again = r"(?P=end)[ :=]{1,3}"
    found = ignoring_case(
        rf"^[ \t|*>`-]{{0,8}}(?P<one>{_EARLIER}|{_LATER}){_CLAUSE}{device}{first}[ ]?[,;.][ ]?(?:and |but )?"
        rf"(?P<two>{_EARLIER}|{_LATER}){_CLAUSE}(?:{again})?{last}[ .]*$"
    ).search(line)
    if not found:
        return line
    order = [bool(ignoring_case(_EARLIER).fullmatch(found[name])) for name in ("one", "two")]
    if order == [True, False]:
        return f"{found['end']} before {found['first']} after {found['last']}"
    return f"{found['end']} before {found['last']} after {found['first']}" if order == [False, True] else line


def _with_expected_unit(line: str) -> str:
    """The line with the unit of its rate also behind the expected number."""
    units = {one[0] for one in ignoring_case(rf"(?<=[0-9 ]){UNIT}(?![\w])").finditer(line)}
    if len(units) != 1:
        return line
    bare = rf"(?<![\w-])((?:expected|expect|expecting|target|nominal)[ :=~≈]{{1,4}}{NUMBER})(?![\w.]|[ ]?{UNIT})"
    return ignoring_case(bare).sub(rf"\1 {units.pop()}", line)
