"""The elements of an XML text in order, with the line at which each begins.

XML from other machines is not trusted. A DOCTYPE ends the reading, because it can define entities of unlimited size.
Deep nesting and implausible numbers of elements end it too. The elements before that position are kept. If a tag does
not fit or the end is missing, a line before it can be missing, too; then only the elements before the first one with
another indentation are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.parsers import expat

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked
from .part import Part

_DEEPEST, _MOST = 64, 5_000  # nesting and number of elements; NCCL accepts 256 per host for the 18 hosts of a rack
_LONGEST = 200  # characters of a cited line


class Element(Struct, frozen=True, eq=False):
    """A tag with its attributes. `where` cites its first line."""

    tag: str
    attributes: Mapping[str, str]
    parent: Element | None
    where: Evidence


class _Refused(Exception):
    """A text that may be valid XML but exceeds a limit."""


_TAG = re.compile(r"<(/?)([A-Za-z]\w{0,40})((?:\s[^<>]{0,2000})?)>")


def whole(text: str, above: Sequence[str]) -> str:
    """A fragment of XML as a whole text with the same lines. `above`: the tags of the elements around it.

    End tags of elements that begin before the fragment are removed. Elements that do not end in it get an end.
    """
    open_now: list[tuple[str, int]] = []
    pieces, done = [], 0
    for found in _TAG.finditer(text):
        if found[1]:
            if open_now and open_now[-1][0] == found[2]:
                open_now.pop()
                continue
            pieces.append(text[done : found.start()])
            done = found.end()
        elif not found[3].endswith("/"):
            open_now.append((found[2], found.start()))
    body = "".join(pieces) + text[done:]
    cut = body.rfind("<")
    body = body if ">" in body[cut:] else body[:cut]
    names = [tag.split()[0] for tag in above]
    begins = "".join(f"<{tag}>" for tag in above)
    ends = "".join(f"</{name}>" for name in (*(name for name, _ in reversed(open_now)), *reversed(names)))
    return f"{begins}{body.rstrip()}{ends}"


def elements(part: Part, text: str, most: int = _MOST) -> Iterator[Element | NotChecked]:
    """The elements, parents before children. The last item is a NotChecked if the text is incomplete or invalid.

    `text` is the beginning of the part. `most` is the largest number of elements.
    """
    found: list[Element] = []
    columns: dict[Element, int] = {}
    why, misfit = _parse(part, text, found, columns, most)
    yield from _well_indented(found, columns) if misfit else found
    if why:
        yield NotChecked(what="dump", subject=part.file, reason=Reason.INCOMPLETE, detail=why)


def _well_indented(found: Sequence[Element], columns: Mapping[Element, int]) -> Iterator[Element]:
    """The elements before the first one that is not as far to the right of its parent as the others."""
    step: int | None = None
    for one in found:
        if one in columns and one.parent is not None and one.parent in columns:
            own = columns[one] - columns[one.parent]
            step = own if step is None else step
            if own != step or own <= 0:
                return
        yield one


def _parse(
    part: Part, text: str, found: list[Element], columns: dict[Element, int], most: int
) -> tuple[str | None, bool]:
    """Append the elements to `found`, with the columns of those that begin their lines. Returns the reason for an early
    end, and whether the XML is invalid there.
    """
    text = text.replace("\r\n", "\n").replace("\r", " ")  # only expat counts a lone carriage return as a line break
    lines = part.text.replace("\r\n", "\n").replace("\r", " ").split("\n")
    open_now: list[Element] = []
    parser = expat.ParserCreate("utf-8")

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if len(open_now) >= _DEEPEST:
            raise _Refused(f"elements are nested deeper than {_DEEPEST}")
        if len(found) >= most:
            raise _Refused(f"more than {most} elements")
        number = parser.CurrentLineNumber
        where = Evidence(part.where(number - 1), lines[number - 1][: 4 * _LONGEST].strip()[:_LONGEST])
        open_now.append(Element(tag, attributes, open_now[-1] if open_now else None, where))
        found.append(open_now[-1])
        line = lines[number - 1]
        if len(line) - len(line.lstrip()) == parser.CurrentColumnNumber:
            columns[open_now[-1]] = parser.CurrentColumnNumber

    def end(tag: str) -> None:
        open_now.pop()

    def doctype(*_: object) -> None:
        raise _Refused("it has a DOCTYPE, which is not read")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = begin, end, doctype
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as wrong:
        why = expat.ErrorString(wrong.code)
        return f"line {part.place(wrong.lineno - 1)}: {why}; everything before it was read", True
    except _Refused as refused:
        return f"line {part.place(parser.CurrentLineNumber - 1)}: {refused}", False
    return None, False
