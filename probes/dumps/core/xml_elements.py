"""The elements of an XML text, one after the other, with the line that each begins in.

XML of others is not to be trusted: a DOCTYPE, which is where entities that grow without bound are made, ends the
reading, and so do nesting and numbers that no machine has. What stands before the place that is wrong is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.parsers import expat

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked

_DEEPEST, _MOST = 64, 5_000  # elements; NCCL takes 256 of each of the 18 hosts of a rack
_LONGEST = 200  # characters of a line that is cited


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """A tag with its attributes; `where` cites the line in which it begins."""

    tag: str
    said: Mapping[str, str]
    above: Element | None
    where: Evidence


class _Refused(Exception):
    """What we do not read though it may be XML."""


def elements(name: str, text: str, first: int = 1, most: int = _MOST) -> Iterator[Element | NotChecked]:
    """The elements from the top, each before those in it; last a NotChecked where the text ends or breaks too soon.

    `first` is the line of the file in which the text begins. There are not more than `most` elements.
    """
    found: list[Element] = []
    why = _parse(name, text, first - 1, found, most)
    yield from found
    if why:
        yield NotChecked(what="dump", subject=name, reason=Reason.UNREADABLE, detail=why)


def _parse(name: str, text: str, before: int, found: list[Element], most: int) -> str | None:
    """Append the elements to `found`; why it ended before the end of the text, or None."""
    text = text.replace("\r\n", "\n").replace("\r", " ")  # which expat counts as a line, and nothing else does
    lines = text.split("\n")
    open_now: list[Element] = []
    parser = expat.ParserCreate("utf-8")

    def begin(tag: str, said: dict[str, str]) -> None:
        if len(open_now) >= _DEEPEST:
            raise _Refused(f"elements are nested deeper than {_DEEPEST}")
        if len(found) >= most:
            raise _Refused(f"more than {most} elements")
        number = parser.CurrentLineNumber
        where = Evidence(f"{name}:{before + number}", lines[number - 1][: 4 * _LONGEST].strip()[:_LONGEST])
        open_now.append(Element(tag, said, open_now[-1] if open_now else None, where))
        found.append(open_now[-1])

    def end(tag: str) -> None:
        open_now.pop()

    def doctype(*_: object) -> None:
        raise _Refused("it has a DOCTYPE, which is not read")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = begin, end, doctype
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as wrong:
        return f"line {before + wrong.lineno}: {expat.ErrorString(wrong.code)}; what stands before that was read"
    except _Refused as refused:
        return f"line {before + parser.CurrentLineNumber}: {refused}"
    return None
