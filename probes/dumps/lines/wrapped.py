"""Joins lines that a terminal or a mail program wrapped.

A terminal cuts each line at its width: no line is longer, and each line of this length continues on the next line. A
mail program cuts between words: the next word does not fit into the width. The source of a mail can be in
"quoted-printable": lines end in "=", and signs are written as "=3D". Whether an output is wrapped is not certain
from its form. So this is a proposal: the caller keeps it only if the readers read more from it.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator, Sequence, Set
from itertools import groupby, pairwise
from typing import NamedTuple

from .prefixes import layers
from .shapes import shape
from .table_rows import continued

_NARROWEST, _WIDEST, _WIDEST_MAIL, _WIDEST_PROSE = 60, 400, 80, 100  # columns; prose has no tabs
LONGEST = 1 << 16  # characters of a text from a terminal or a mail
_FEWEST, _SHARE = 2, 0.2  # different lines that are cut within a word, and their share: they show a wrapped text
_USUAL = (80, 120, 132, 160)  # columns of terminals
_BEGIN = 6  # characters that show how lines begin
_OPEN = ' \t-=+|"'  # beginnings of rows, rules, and members of JSON
_START = re.compile(r"[^A-Za-z]*[A-Za-z].{0,5}")
_ERROR, _INDENTED = re.compile(r"\S.{0,80}?(?:ERROR|WARN|FAIL|[Ee]rror|[Ff]ailed)"), re.compile(r"[ ]{2,12}[A-Za-z]")
_MANY = 0.8  # share of full lines above which the text is a table with rows of equal length
_REGISTER = re.compile(r"[ ]{1,40}(?:Dev|Lnk|Slt)(?:Cap|Ctl|Sta)2?:")  # lspci
_SHORTEST_SOFT, _LONGEST_SOFT = 73, 76  # characters of a line that ends in "=" (RFC 2045, 6.7)
_ESCAPED = re.compile(r"=(?:3D|09|C2=A0|20$)", re.MULTILINE)  # an equals sign or a blank in such a mail
_EDGES, _OPENS = ("|", "+"), ("{", "[", "<")  # of a table; of JSON and XML
_QUOTED = re.compile(r"^(?:> ?){1,8}")
# A line of a kernel log: its time, or the driver and the device
_LOGGED = re.compile(
    r"[ \t]{0,8}(?:\[[ ]{0,8}[0-9]{1,9}\.[0-9]{6}\]|[A-Z][a-z]{2} [ 0-3]?[0-9] [0-9:]{8} \S{1,60} kernel: "
    r"|[a-z][\w-]{1,30} [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: )"
)
_REST = re.compile(r"[ \t]{0,8}(?![a-z]{2,8}\d[\w/.-]{0,30}: )[\w\[({\"'<-](?![_=*-]{2})")  # no rule, fence or row
_REMARK = re.compile(r"[ ]{2,40}(?:# |<-|//)")  # of a person at the end of a line, which is complete then
_NARROWEST_MAIL = 66  # columns
_COMMENT = re.compile(r"[ \t]{0,40}(?:#|//|>|\*|--)[ \t](?=[A-Za-z\"'`(])")  # of a program, or a quote
_NARROWEST_COMMENT, _WIDEST_COMMENT = 50, 124  # columns


class Joined(NamedTuple):
    """The joined lines, and for each the number of its first line (from 0).

    `trust`: 2 if the form is certain, 1 if words are cut at the width. 0: only the readers can tell.
    """

    text: str
    origin: list[int]
    trust: int


def joined(text: str) -> Iterator[Joined]:
    """The text with its lines joined in each way in which it can have been wrapped."""
    body = text.rstrip("\n")
    lines, end = body.split("\n"), text[len(body) :]
    soft, escaped = _soft(lines), len(_ESCAPED.findall(text))
    if soft or escaped:
        whole = _join([line[:-1] if number in soft else line for number, line in enumerate(lines)], soft, "", 1, end)
        trust = 2 if soft or escaped >= _FEWEST else 1
        mail = Joined("\n".join(map(_of_mail, whole.text.split("\n"))), whole.origin, trust)
        inner = next(_logged(mail.text.split("\n")), None)
        yield Joined(inner.text, [mail.origin[number] for number in inner.origin], trust) if inner else mail
    yield from _logged(lines, end)
    yield from _commented(lines, end)
    width = max(map(len, lines))
    rows, closed = continued(lines) if "|" in text else (set[int](), False)
    if rows:
        yield _join(lines, rows, "" if closed else " ", 1 + closed, end)
    if errors := _unfinished(lines):
        yield _join(lines, errors, " ", 2, end)
    if not _NARROWEST <= width <= _WIDEST or len(lines) < 2:
        return
    if next(layers(lines), None):
        return  # a log or a launcher writes its prefix before each line, not before a part of a line
    full = {number for number, line in enumerate(lines[:-1]) if len(line) == width and _continues(lines[number + 1])}
    broken = set[int]()
    if width <= (_WIDEST_MAIL if "\t" in text else _WIDEST_PROSE):
        broken = {number for number, line in enumerate(lines[:-1]) if _does_not_fit(line, lines[number + 1], width)}
    by_words = [_join(lines, broken, " ", 0, end)] if broken and not _begin_alike(lines, broken) else []
    trust = (_trust(lines, full, width) or _of_log(lines, full)) if full else 0
    at_width = []
    if full and not _begin_alike(lines, full) and (len(full) < _MANY * len(lines) or text.lstrip().startswith(_OPENS)):
        at_width = [_join(lines, full, "", trust, end)]
    if len(edged := _edged(lines)) >= _FEWEST and not edged <= full:
        yield _join(lines, edged, " ", 2, end)
    yield from (*at_width, *by_words) if trust or width >= min(_USUAL) else (*by_words, *at_width)


def _logged(lines: Sequence[str], end: str = "") -> Iterator[Joined]:
    """The lines with the rest of each line of a kernel log whose next word did not fit into the width of a mail.

    The rest has no time and no device of its own. A sentence behind the log can look like a rest, so few of them are
    not certain.
    """
    plain = [_QUOTED.sub("", line, count=1) for line in lines]
    quotes = [line.removesuffix(rest) for line, rest in zip(lines, plain, strict=True)]
    broken, is_open = set[int](), False
    for number, (line, following) in enumerate(pairwise(plain)):
        is_open = is_open or _LOGGED.match(line) is not None
        is_open = is_open and quotes[number] == quotes[number + 1] and len(lines[number]) <= _WIDEST_PROSE
        is_open = is_open and _REST.match(following) is not None and not _LOGGED.match(following)
        is_open = is_open and not _REMARK.search(line)
        if is_open:
            broken.add(number)
    width = max((len(lines[number]) for number in broken), default=0)
    broken = {number for number in broken if _is_full(lines[number], plain[number + 1], max(width, _NARROWEST_MAIL))}
    if broken:
        rests = [line.lstrip() if number - 1 in broken else lines[number] for number, line in enumerate(plain)]
        yield _join(rests, broken, " ", 2 if len(broken) > _FEWEST else 1, end)


def _commented(lines: Sequence[str], end: str) -> Iterator[Joined]:
    """The lines with the sentences of comments, which begin each line with the same sign, in one line each."""
    signs = [found[0] if (found := _COMMENT.match(line)) else "" for line in lines]
    runs = [(sign, len(list(group))) for sign, group in groupby(signs)]
    broken, first = set[int](), 0
    for sign, count in runs:
        width = max(map(len, lines[first : first + count]))
        wrapped = bool(sign) and _NARROWEST_COMMENT <= width <= _WIDEST_COMMENT
        for number in range(first, first + count - 1) if wrapped else ():
            if _is_full(lines[number], lines[number + 1][len(sign) :], width):
                broken.add(number)
        first += count
    if broken:
        rests = [line[len(signs[number]) :] if number - 1 in broken else line for number, line in enumerate(lines)]
        yield _join(rests, broken, " ", 0, end)


def _is_full(line: str, following: str, width: int) -> bool:
    """Whether the first word of the next line does not fit behind this line."""
    return len(line) + 1 + len(following.lstrip().split(" ", 1)[0]) > width


def _soft(lines: Sequence[str]) -> set[int]:
    """The lines of a mail in "quoted-printable" that continue on the next line."""
    ends = {
        number
        for number, line in enumerate(lines[:-1])
        if line.endswith("=") and not line.endswith("==") and _SHORTEST_SOFT <= len(line) <= _LONGEST_SOFT
    }
    return ends if len(ends) >= _FEWEST or any(len(lines[number]) == _LONGEST_SOFT for number in ends) else set()


def _of_mail(line: str) -> str:
    """A line of such a mail, decoded. Bytes that are no UTF-8 become a replacement character."""
    return quopri.decodestring(line.encode("utf-8", "replace")).decode("utf-8", "replace").replace("\n", " ")


def _unfinished(lines: Sequence[str]) -> set[int]:
    """The errors whose sentence goes on in an indented line."""
    return {
        number
        for number, (line, following) in enumerate(pairwise(lines))
        if line.rstrip().endswith(",") and _ERROR.match(line) and _INDENTED.match(following)
    }


def _begin_alike(lines: Sequence[str], continued: Set[int]) -> bool:
    """Whether the lines that would continue others begin like them: then each is a line of its own."""
    begins = {shape(line[:_BEGIN]) for number, line in enumerate(lines) if number - 1 not in continued}
    alike = sum(
        _same_start(lines[number], lines[number + 1])
        if lines[number + 1][0] in _OPEN
        else shape(lines[number + 1][:_BEGIN]) in begins
        for number in continued
    )
    return alike * 2 >= len(continued)


def _same_start(line: str, following: str) -> bool:
    """Whether both have the same text before the first letter (an indentation, the number of the line) and behind it.

    The rest of a row of numbers has no letter.
    """
    one, other = _START.match(line), _START.match(following)
    return one is not None and other is not None and shape(one[0]) == shape(other[0])


def _trust(lines: Sequence[str], full: Set[int], width: int) -> int:
    rows = {lines[number] for number in full if _is_row(lines[number], lines[number + 1])}
    words = {lines[number] for number in full if _is_cut(lines[number], lines[number + 1])}
    if len(rows) >= _FEWEST and len(rows) * 2 >= len({lines[number] for number in full}):
        return 2
    several = len(words) >= _FEWEST and len(words) * 2 >= len(full) and len(words) >= _SHARE * len(lines)
    return int(several or (width in _USUAL and len(words) == len(full)))


def _of_log(lines: Sequence[str], full: Set[int]) -> int:
    """1 if a log writes its prefix before all lines but those that continue full ones."""
    rest = [line for number, line in enumerate(lines) if number - 1 not in full]
    return int(len(rest) > 1 and next(layers(rest), None) is not None)


def _continues(line: str) -> bool:
    """Whether it can be the rest of a line. A tab begins a line of a tool (lspci, ibv_devinfo), as do registers."""
    return bool(line.strip()) and not line.startswith("\t") and not _REGISTER.match(line)


def _is_cut(line: str, following: str) -> bool:
    """Whether a word can continue on the next line."""
    return line[-1].isalnum() and following[0].isalnum()


def _is_row(line: str, following: str) -> bool:
    """Whether the row of a table with edges continues on the next line."""
    begins, ends = line.lstrip().startswith(_EDGES), following.rstrip().endswith(_EDGES)
    whole = line.rstrip().endswith(_EDGES) or following.lstrip().startswith(("|  ", "| ", "+-", "+=", "|=", "|-"))
    return begins and ends and not whole


def _edged(lines: Sequence[str]) -> set[int]:
    """The rows of a table with edges that end on the next line."""
    return {
        number
        for number, (line, following) in enumerate(pairwise(lines))
        if line.lstrip().startswith(_EDGES)
        and not line.rstrip().endswith(_EDGES)
        and not following.lstrip().startswith(_EDGES)
        and following.rstrip().endswith(_EDGES)
    }


def _does_not_fit(line: str, following: str, width: int) -> bool:
    """Whether the first word of the next line does not fit behind this line."""
    begins = bool(following) and not following[:1].isspace()
    return begins and " " in line.strip() and _is_full(line, following, width)


def _join(lines: Sequence[str], continued: Set[int], between: str, trust: int, end: str) -> Joined:
    texts, origin = [lines[0]], [0]
    for number, line in enumerate(lines[1:], 1):
        if number - 1 in continued:
            texts[-1] += between + line
        else:
            texts.append(line)
            origin.append(number)
    return Joined("\n".join(texts) + end, origin + list(range(len(lines), len(lines) + len(end))), trust)
