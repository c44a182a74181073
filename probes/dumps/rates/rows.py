"""One row of a report of rates: who sends to whom, the numbers with their units, and the conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ....models.facts.units import GIB, KIB, MIB
from .words import Word

_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_BINARY = {"k": KIB, "m": MIB, "g": GIB, "t": GIB * KIB}
_SIZES = {"k": KIB, "m": MIB, "g": GIB, "": 1}
_ENDS = frozenset({"address", "gpu", "numa", "disk", "nic", "host", "name"})
_DIRECTIONS = frozenset({"upward", "downward"})
_GIGA = 1e9
_REFERENCES = frozenset({"before", "after"})


class Header(Struct, frozen=True):
    """The words above the rows of a table."""

    factor: float | None = None  # bytes per second of its unit
    kinds: tuple[str, ...] = ()  # the kinds of its words
    texts: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()  # of numbers: "unit" is a rate, "aside" is a time


class RateRow(Struct):
    """The words of a row by their meaning."""

    pairs: list[tuple[str, str]] = field(default_factory=list)  # sender and receiver
    alone: list[str] = field(default_factory=list)  # ends without a second one
    joined: bool = False  # the pairs are joined by "+", "and", "&"
    rates: list[tuple[float, str]] = field(default_factory=list)  # bytes per second, and the mark of the number
    bare: list[float] = field(default_factory=list)  # numbers without a unit
    doubtful: str = ""  # a unit that can be bits or bytes
    marks: set[str] = field(default_factory=set)
    size: int | None = None
    path: str = ""
    collective: str = ""
    machine: bool = False  # its first cell is in a column of machines


def factor_of(unit: str) -> float | None:
    """Bytes per second of a unit. None: "gb/s" can be bits or bytes."""
    found = re.match(r"(?i:([kmgt])(i?))(b(?!it|yte)|B|(?i:bits?|bytes?))", unit)
    if not found or (found[3] == "b" and unit == unit.lower() and not unit.endswith("ps")):
        return None
    prefix = (_BINARY if found[2] else _PREFIXES)[found[1].lower()]
    is_bits = found[3] == "b" or found[3].lower().startswith("bit")
    return prefix / 8 if is_bits else prefix


def header_of(words: Sequence[Word]) -> Header | None:
    """The header of a table: a unit, or the words for before and after, and no number."""
    units = [factor for word in words if word.kind == "unit" and (factor := factor_of(word.text))]
    if not units and any(word.kind == "bus" for word in words):
        units = [_GIGA]
    named = bool(units) or {word.kind for word in words} >= _REFERENCES
    if not named or any(word.kind in ("number", "size") for word in words):
        return None
    kinds = tuple(word.kind for word in words)
    columns = tuple(kind for kind in kinds if kind in ("unit", "aside"))
    return Header(units[0] if units else None, kinds, frozenset(word.text.lower() for word in words), columns)


def is_change(rows: Iterator[set[str]]) -> bool:
    """Whether some rows are from before a change and others from after it."""
    references = [kinds & {"before", "after"} for kinds in rows]
    return {"before"} in references and {"after"} in references


def single_node(rows: Iterator[Sequence[Word]]) -> bool:
    """Whether all rows with a node name the same one."""
    names = [[word.text for word in row if word.kind == "name"] for row in rows]
    return len({tuple(some) for some in names}) == 1 and all(len(some) == 1 for some in names)


def row_of(words: Sequence[Word], header: Header) -> RateRow:
    """The row by its words. `header` gives what the row does not repeat."""
    row, arrow, mark = RateRow(), "", ""
    words = _with_ends(words, header)
    if not header.factor and any(word.kind == "bus" for word in words):
        header = replace(header, factor=_GIGA)
    first = next((word.kind for word in words if word.kind in ("number", *_REFERENCES)), "")
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else None
        if word.kind in _ENDS:
            _add_end(row, _name(word), arrow, word.joint)
            arrow = ""
        elif word.kind == "arrow":
            arrow = word.text
        elif word.kind == "number":
            after = words[place + 2] if following and following.kind == "unit" and place + 2 < len(words) else None
            behind = after.kind if after and after.kind in _REFERENCES and first == "number" else mark
            _add_number(row, word.text, following, behind, header)
        elif word.kind in ("size", "path", "collective"):
            _set(row, word)
        elif word.kind not in ("plain", "unit", "device", "aside", "bus", "counted"):
            row.marks.add(word.kind)
            mark = word.kind if word.kind in (*_REFERENCES, *_DIRECTIONS, "least", "sum", "wanted") else mark
    return row


def _with_ends(words: Sequence[Word], header: Header) -> list[Word]:
    """Numbers in the columns "GPU from" and "GPU to" as GPUs, and no times."""
    numbers = [place for place, word in enumerate(words) if word.kind == "number"]
    if "aside" in header.columns and len(numbers) == len(header.columns):
        aside = {place for place, column in zip(numbers, header.columns, strict=True) if column == "aside"}
        words = [word for place, word in enumerate(words) if place not in aside]
    if "gpu" not in header.texts or any(word.kind in _ENDS for word in words):
        return list(words)
    arrow = [word.kind for word in words[:3]] == ["number", "arrow", "number"]  # "0 -> 1"
    count = 2 if arrow or {"from", "src", "source", "sender"} & header.texts else 1
    ends = [place for place, word in enumerate(words) if word.kind == "number" and word.text.isdecimal()][:count]
    return [Word("gpu", f"gpu{word.text}", word.joint) if at in ends else word for at, word in enumerate(words)]


def _name(word: Word) -> str:
    """The end as facts name it: "gpu3", "numa0", "mlx5_0", "host"."""
    number = re.search(r"(?<![0-9])[0-9]+$", word.text)
    if word.kind == "disk":
        return word.text.lower().removeprefix("/dev/")
    if word.kind in ("gpu", "numa") and number:
        return f"{word.kind}{int(number[0])}"
    return "host" if word.kind == "host" else word.text if word.kind == "name" else word.text.lower()


def _add_end(row: RateRow, end: str, arrow: str, joint: str) -> None:
    """Add an end. Two ends are a pair if an arrow or only blanks, dashes or cells separate them."""
    if row.alone and row.alone[-1] != end and (arrow or joint.strip(" \t|,-/") == ""):
        other = row.alone.pop()
        row.pairs.append((end, other) if arrow.startswith(("<-", "←")) and not arrow.endswith(">") else (other, end))
    else:
        row.alone.append(end)
    row.joined |= bool(row.pairs) and ("+" in joint or "&" in joint)


def _add_number(row: RateRow, text: str, following: Word | None, mark: str, header: Header) -> None:
    """Add a number with its unit, or with the unit of the header."""
    value = float(text.replace(",", ".")) if text.count(",") == 1 and len(text.split(",")[1]) < 3 else None
    value = float(text.replace(",", "")) if value is None else value
    own = following is not None and following.kind == "unit"
    factor = factor_of(following.text) if own and following else header.factor
    if own and factor is None and following:
        row.doubtful = following.text
    elif factor is None:
        row.bare.append(value)
    else:
        row.rates.append((value * factor, mark))


def _set(row: RateRow, word: Word) -> None:
    if word.kind == "path":
        row.path = word.text.upper()
    elif word.kind == "collective":
        row.collective = re.sub("[_-]", "_", word.text.lower())
    else:
        found = re.match(r"(?i)([0-9]+)[ ]?([kmg]?)", word.text)
        row.size = int(found[1]) * _SIZES[found[2].lower()] if found else None
