"""A file cut into the outputs of tools that it holds: a pasted issue, a log of commands, a report of many tools.

Each family says how a line looks with which an output of its tools begins (`begin`, a regular expression). The output
goes on to the next such line of any family, or to a shell's prompt, a fence, a headline. Neighbours of one family are
one part. Where each line of a family speaks for itself (`lines`), what other such logs wrote between does not part it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from .frames import first_block, unframed
from .other_hosts import OTHER_HOSTS
from .part import Part
from .reader import Reader
from .shapes import loosened, shape

# Between outputs: fences, headlines of collections, and prompts with a command ("$ nvidia-smi", "root@node1:~# lspci").
# A "#" alone is root's prompt before the name of a tool only: outputs have comments.
_COMMAND = r"(?:sudo |\w+=\S+ ){0,6}[a-z/~.][\w./-]*(?:[ ].*)?"
_TOOLS = (
    r"(?:sudo |/usr/s?bin/)?(?:nvidia|lspci|lstopo|lscpu|lsblk|ls|ib|rdma|ethtool|ip|dmesg|journalctl|cat|grep|numactl"
    r"|nvme|df|free|ulimit|env|uname|dcgmi|rocm|amd|fi_info|show_gids|mpirun|srun|fio|systemctl)[\w-]*(?:[ ].*)?"
)
_WHO = r"(?:\([\w.-]+\)[ ]?)?(?:\[[^\]\n]{1,80}\]|[\w.-]+@[\w.-]+[^\n$#%]{0,80})"
_BETWEEN = (
    rf"^[ \t]*(?:```.*|~~~.*|={{8}}.*|-{{20,}}[ \t]*|_{{20,}}[ \t]*|\#{{2,}} .*"
    rf"|{_WHO}[$#%] {_COMMAND}|[$%] {_COMMAND}|\# {_TOOLS})$"
)
_SEPARATOR = re.compile(_BETWEEN)
_DEEPEST = 2  # a quoted journal of a container
_SHORT, _FEW = 1 << 20, 2  # of texts that are longer, fewer ways are tried to read what is in no known form
_MOST_SHAPES, _LONGEST = 50_000, 2_000  # that are remembered, and characters of one
_BLOCK = 1 << 20  # characters whose shapes are made at once
_NEVER = re.compile("(?!)")
_ESCAPES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&"}  # of a web page
_ELEMENT = re.compile(r"<[a-z_]{2,40}[ >]")
_VARIABLE = re.compile(r"[ \t]*(?:export |declare -x )?[A-Z_][A-Z0-9_]{1,80}=")
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)|\x00")


def means_nothing(part: Part) -> bool:
    """Whether it is lines between outputs alone, or without a word (the edge of a table), or variables."""
    return all(
        not any(map(str.isalnum, line)) or _SEPARATOR.match(line) or _VARIABLE.match(line) for _, line in part.lines()
    )


def clean(text: str) -> str:
    """Without colour codes, carriage returns, zero bytes and what web pages put for characters. Lines stay lines."""
    if "\xa0" in text or text.startswith("\ufeff"):
        text = text.removeprefix("\ufeff").replace("\xa0", " ")
    if ("&lt;" in text or "&gt;" in text) and not _ELEMENT.search(text):
        for escape, character in _ESCAPES.items():
            text = text.replace(escape, character)
    return _CODES.sub("", text) if "\x1b" in text or "\r" in text or "\x00" in text else text


def split(file: str, text: str, at: float, families: Sequence[Reader]) -> Iterator[tuple[Reader | None, Part]]:
    """The parts in order, each with its family; None: in no form that is known. `text` is cleaned first."""
    plain, others = first_block(clean(text))
    yield from _cut(Part(file, 1, plain, at), tuple(families), _DEEPEST)
    if others:
        yield OTHER_HOSTS, Part(file, 1, "\n".join(others), at)


def _cut(whole: Part, families: tuple[Reader, ...], deep: int) -> Iterator[tuple[Reader | None, Part]]:
    """The parts of a text that is clean."""
    logs: dict[Reader, list[_Stretch]] = {}
    for stretch in _stretches(whole.text, families):
        if stretch.family and stretch.family.lines:
            logs.setdefault(stretch.family, []).append(stretch)
            continue
        yield from _woven(whole, logs)
        logs = {}
        piece = _part(whole, stretch.line, whole.text[stretch.begin : stretch.end])
        if piece.text.strip():
            yield from ((stretch.family, piece),) if stretch.family else _bared(piece, families, deep)
    yield from _woven(whole, logs)


def _bared(piece: Part, families: tuple[Reader, ...], deep: int) -> Iterator[tuple[Reader | None, Part]]:
    """Lines in no form that is known: what is known of them without what stands around them."""
    short = len(piece.text) < _SHORT
    for text, others in islice(unframed(piece.text), None if short else _FEW) if deep else ():
        inner = list(_cut(Part(piece.file, piece.first, text, piece.at), families, deep - 1 if short else 0))
        if any(family for family, _ in inner):
            yield from inner
            if others:
                yield OTHER_HOSTS, Part(piece.file, piece.first, "\n".join(others), piece.at)
            return
    yield None, piece


class _Stretch(NamedTuple):  # quick to make: logs that alternate have hundreds of thousands
    """Neighbouring lines of one family: where they stand in the text, and the number of the first, from 0."""

    family: Reader | None
    begin: int
    end: int
    line: int


def _stretches(text: str, families: Sequence[Reader]) -> Iterator[_Stretch]:
    begin = line = 0
    last: Reader | None = None
    for start, number, family in _marks(text, tuple(families)):
        if family is None or family is not last:
            yield _Stretch(last, begin, start, line)
            begin, line, last = start, number, family
    yield _Stretch(last, begin, len(text), line)


def _woven(whole: Part, logs: Mapping[Reader, Sequence[_Stretch]]) -> Iterator[tuple[Reader, Part]]:
    """Logs that were written to one file at the same time: a part for each, where the lines of others are empty."""
    for family, stretches in logs.items():
        yield family, _part(whole, stretches[0].line, "".join(_pieces(whole.text, stretches)))


def _part(whole: Part, line: int, text: str) -> Part:
    return Part(whole.file, whole.first + line, text, whole.at)


def _pieces(text: str, stretches: Sequence[_Stretch]) -> Iterator[str]:
    line = stretches[0].line
    for stretch in stretches:
        piece = text[stretch.begin : stretch.end]
        yield "\n" * (stretch.line - line)
        yield piece
        line = stretch.line + piece.count("\n")


def _marks(text: str, families: tuple[Reader, ...]) -> Iterator[tuple[int, int, Reader | None]]:
    """Where a line begins an output, and of which family; None: what stands between outputs. Its number from 0."""
    known: dict[str, re.Pattern[str] | None] = {}
    named = {f"f{number}": family for number, family in enumerate(families)}
    number = start = 0
    while start < len(text):
        end = text.find("\n", start + _BLOCK)
        forms = shape(text[start : end if end >= 0 else len(text)]).split("\n")
        for form in forms:
            pattern = known.get(form, _NEVER)
            if pattern is _NEVER:
                pattern = _beginnings(families, form)
                if len(known) < _MOST_SHAPES and len(form) < _LONGEST:
                    known[form] = pattern
            if pattern and (found := pattern.match(text, start)):
                yield start, number, named.get(found.lastgroup or "")
            start += len(form) + 1
            number += 1


def _beginnings(families: tuple[Reader, ...], form: str) -> re.Pattern[str] | None:
    """The expression of those with which a line of this shape may begin; None: of no one."""
    some, each = _loose(families)
    if not some.match(form):
        return None
    return _expression(families, tuple(number for number, loose in enumerate(each) if loose.match(form)))


@cache
def _loose(families: tuple[Reader, ...]) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    """Matches the shapes of all lines that mean something here; by family, of those with which its outputs begin."""
    each = [loosened(family.begin) for family in families]
    some = "|".join(f"(?:{one})" for one in (*each, loosened(_BETWEEN)))
    return re.compile(some, re.MULTILINE), tuple(re.compile(one, re.MULTILINE) for one in each)


@cache
def _expression(families: tuple[Reader, ...], numbers: tuple[int, ...]) -> re.Pattern[str]:
    """One for some of the families and what stands between outputs; its groups are named f0, f1 ... and between."""
    begins = "".join(f"(?P<f{number}>{families[number].begin})|" for number in numbers)
    return re.compile(f"{begins}(?P<between>{_BETWEEN})", re.MULTILINE)
