"""Finds lines that something cut: a narrow window, a mail program, a copy by hand.

The readers do not join them: where a line ends is not certain. The form of an output shows that a line is cut: an open
bracket, a name without a value, a colon that is not below the others, a link without its width, a row without a cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

_PART = re.compile(r"[ \t]+[A-Za-z][\w .()-]{0,60}[ ]{2,}:[ \t]*|[ \t]*:(?:[ ]{1,2}[\w.%<>/-]{1,20}){0,3}[ \t]*")
_ALIGNED = re.compile(r"[^:]{0,100}[ ]{2}:(?= |$)")
_KEY = re.compile(r"([ \t]*)[A-Za-z][\w .()-]{0,60}:[ \t]*")
_VALUE = re.compile(r"([ \t]*)[A-Za-z][\w .()-]{0,60}:[ \t]*\S.*")
_CLOSES = re.compile(r"[ \t]?[^()\[\]{}<>\"'=:]{0,40}[)\]][,.;]?[ \t]*")
_DIGITS = re.compile(r"x?[0-9]{1,4}x?")  # of "0x04", "16x"
# lspci
_ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = re.compile(rf"{_ADDRESS} [A-Z0-9][^:]{{2,60}}[:\[].*")
_LINK = re.compile(r"\bLnk(?:Cap|Sta):(?=[ \t]|$)(?!.*(?:\bWidth[ =](?:x[0-9]|unknown)|GT/s,? x[0-9]))")
_OF_LINK = re.compile(r"[ \t]?(?:(?:(?:n?k)?S)?t?a|(?:(?:n?k)?C)?a?p)?:[ \t]+(?:Port #|Speed )")
_LANES = re.compile(r"(\bLnk(?:Cap|Sta):[ \t][^\n]*\bWidth x)[0-9][ \t]*(?=\n[ \t]?[0-9](?:[, ]|$))", re.MULTILINE)
# nvidia-smi --query-gpu
_COLUMNS = re.compile(r"[a-z_]+(?:\.[a-z_.]+)?(?: \[[\w/%.]+\])?(?:, ?[a-z_]+(?:\.[\w.]+)?(?: \[[\w/%.]+\])?){2,}")
_KNOWN = re.compile(r"[a-z][._][a-z]|\b(?:index|name|uuid)\b")
_NUMBER = re.compile(r"[ ]?[0-9.]{1,12}(?: [A-Za-z/%]{1,6})?[ ]*")
_SHORT = 50  # characters of the rest of a line
_DATA = re.compile(r"[{<]|\[[ ]?(?:[\[{\"]|$)")  # JSON and XML need no lines
# The end of a word, or of a name and its value, without the indentation of its line. No name of a device, no command.
_REST = re.compile(
    r"(?:[0-9]{1,12}|(?!\.\.\.)(?![a-z_]{0,20}[0-9])(?!.* -)[a-z_:,.)/%][^\s#$|:]{0,40}"
    r"(?:(?: [^\s#$|:]{1,40}){0,2}[ ]{0,30}:[ \t]+[^#$|]{1,40}| [^\s#$|:]{1,40})?)[ \t]*"
)


def cut_lines(lines: Sequence[str]) -> Iterator[int]:
    """The lines (from 0) that end before their end, and those that begin with the rest of another line."""
    if _DATA.match(next((line for line in lines if line.strip()), "").lstrip()):
        return
    yield from pieces(lines)
    yield from _below_no_other(lines)
    yield from _rows_of_list(lines)
    names = _names(lines)
    titles = Counter(line.split(None, 1)[0] for line in lines if line[:1].isalpha())  # "hca_id:", "provider:"
    for number, (line, following) in enumerate(pairwise([*lines, ""])):
        after = lines[number + 2] if number + 2 < len(lines) else ""
        between = _is_between(line, following, after) and titles[following.split(None, 1)[0]] < 2
        if between or _LINK.search(line) or _is_cut(line, following, after, names):
            yield number


def without_cut_numbers(text: str) -> str:
    """The text without the widths of links that are cut between two digits: "x1" and "6" are no link with one lane."""
    return _LANES.sub(r"\1", text) if "Lnk" in text else text


def pieces(lines: Sequence[str]) -> Iterator[int]:
    """The lines (from 0) with a name and an aligned colon but no value, or with the colon and the value only."""
    yield from (number for number, line in enumerate(lines) if _PART.fullmatch(line))


def _is_cut(line: str, following: str, after: str, names: Mapping[str, int]) -> bool:
    if not line.strip() or not following.strip():
        return False
    return bool(
        (len(following) < _SHORT and _CLOSES.fullmatch(following) and _is_open(line))
        or (line[-1].isdigit() and _DIGITS.fullmatch(following) and _VALUE.fullmatch(line))
        or _OF_LINK.match(following)
        or (_DEVICE.fullmatch(line) and _is_rest_of_device(following, after))
        or _lacks_value(line, following, after, names)
    )


def _is_open(line: str) -> bool:
    """Whether the last bracket on the line is open. A "[" alone at the end begins a list."""
    place = max(line.rfind("("), line.rfind("["))
    text = line.rstrip()
    return place > 0 and max(line.rfind(")"), line.rfind("]")) < place and not text.endswith(("[", "{"))


def _is_rest_of_device(line: str, after: str) -> bool:
    """Whether the line is neither a device nor one of its properties, but these follow, or it ends with a revision."""
    if line[0] == "\t" or line.startswith("  ") or _DEVICE.fullmatch(line) or re.match(_ADDRESS, line):
        return False
    return bool(re.search(r"\(rev [0-9a-f]{2}\)", line)) or after.startswith(("\t", "    "))


def _names(lines: Sequence[str]) -> Counter[str]:
    """How many names with a value have each indentation."""
    return Counter(found[1] for line in lines if (found := _VALUE.fullmatch(line)))


def _lacks_value(line: str, following: str, after: str, names: Mapping[str, int]) -> bool:
    """Whether it is a name like others that have values, and the next line is neither below it nor a name."""
    found = _KEY.fullmatch(line)
    if not found or not names or ":" in following:
        return False
    if _NUMBER.fullmatch(following):
        return True
    name = found[1]
    same = bool(names.get(name)) and _indentation(after) == name and " " not in following.strip()
    return (same or names.get(name, 0) > 1) and len(_indentation(following)) < len(name)


def _is_between(line: str, following: str, after: str) -> bool:
    """Whether the next line has the form of a rest, and no indentation between lines that have one."""
    one, other = _indentation(line), _indentation(after)
    inside = len(one) > 1 or one == "\t"
    title = other.startswith(one) and ":" not in line + following
    return inside and (one == other or title) and bool(_REST.fullmatch(following))


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())] if line.strip() else ""


def _below_no_other(lines: Sequence[str]) -> Iterator[int]:
    """The lines without a colon that, together with the next line, have it where others have it."""
    places = [len(found[0]) if (found := _ALIGNED.match(line)) else 0 for line in lines]
    usual = {place for place, count in Counter(places).items() if place and count > 1}
    for number, (line, place) in enumerate(zip(lines, places[1:], strict=False)):
        if line and ":" not in line and place and place not in usual:
            together = len(line) + place
            if together in usual or (line.strip() and together + 1 in usual):
                yield number


def _rows_of_list(lines: Sequence[str]) -> Iterator[int]:
    """The rows of a list with the names of its columns that have fewer cells, or continue with a number."""
    commas = 0
    for number, line in enumerate(lines):
        if _COLUMNS.fullmatch(line.strip()):
            commas = line.count(",") if _KNOWN.search(line) else 0
        elif commas and "," in line:
            rest = lines[number + 1] if number + 1 < len(lines) else ""
            fewer = line.count(",") < commas or line.rstrip().endswith(",")
            if fewer or (rest.strip() and _NUMBER.fullmatch(rest)):
                yield number
        else:
            commas = 0
