"""Splits a file into the outputs of tools: a pasted issue, a log of commands, a report of many tools.

Each reader has a regular expression for the first line of an output (`begin`). The output continues to the next such
line of any reader, or to a shell prompt, a code fence or a headline. Adjacent outputs of one reader form one part. If
each line of an output has a meaning of its own (`lines`), lines of other such logs in between do not split the part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from ..lines.exported_lines import exported
from ..lines.frames import Frame, first_block, string_frame, strip_frames, uniform_frames, without_containers
from ..lines.markup import lines_of_outputs, without_markup
from ..lines.quoted_lines import is_item
from ..lines.shapes import shape, shape_expression
from .clean import clean
from .other_hosts import OTHER_HOSTS
from .part import Part
from .reader import Reader

# Separators between outputs: code fences, headlines, and prompts with a command ("$ nvidia-smi", "root@node1:~#
# lspci").
# A "#" without a user name is a prompt only before the name of a tool, because outputs contain comments.
_COMMAND = r"(?:sudo |\w+=\S+ ){0,6}[a-z/~.][\w./-]*(?:[ ].*)?"
_TOOLS = (
    r"(?:sudo |/usr/s?bin/)?(?:nvidia|lspci|lstopo|lscpu|lsblk|ls|ib|rdma|ethtool|ip|dmesg|journalctl|cat|grep|numactl"
    r"|nvme|df|free|ulimit|env|uname|dcgmi|rocm|amd|fi_info|show_gids|mpirun|srun|fio|systemctl)[\w-]*(?:[ ].*)?"
)
_USER_HOST = r"(?:\([\w.-]+\)[ ]?)?(?:\[[^\]\n]{1,80}\]|[\w.-]+@[\w.-]+[^\n$#%]{0,80})"
_BETWEEN = (
    rf"^[ \t]*(?:```.*|~~~.*|={{8}}.*|-{{20,}}[ \t]*|_{{20,}}[ \t]*|\#{{2,}} .*"
    rf"|{_USER_HOST}[$#%] {_COMMAND}|[$%] {_COMMAND}|\# {_TOOLS})$"
)
_SEPARATOR = re.compile(_BETWEEN)
# A rule between two lines with columns
_RULED = re.compile(r"[^\n]*\S(?:[ ]{2,}|[ ]?\|[ ]?)\S[^\n]*\n[ \t]*[-=_]{8,}[ \t]*\n[^\n]*\S(?:[ ]{2,}|[ ]?\|[ ]?)\S")
_DEEPEST = 2  # for example a quoted journal of a container
_SHORT, _FEW = 1 << 20, 2  # in longer texts, the reader tries fewer frames around unknown lines
_HEAD = 1 << 15  # characters at the beginning that show a frame around all lines
_MOST_SHAPES, _LONGEST = 50_000, 300  # entries in the cache of a text, and characters per entry
_KEPT_SHAPES = 65_536  # entries that the next text finds: the parts of a report, and its next copy, have the same lines
_FAR = " " * 512  # no output begins behind so many blanks, and each reader would try each of their ends
_BLOCK = 1 << 20  # characters whose shapes are computed at once
_NEVER = re.compile("(?!)")
_VARIABLE = re.compile(r"[ \t]*(?:export |declare -x )?[A-Z_][A-Z0-9_]{1,80}=")
_TRAILING = re.compile(r"(?<![ \t])[ \t]+$", re.MULTILINE)


def is_filler(part: Part) -> bool:
    """Whether the part has separators, lines without a letter or digit (the edge of a table), and variables only."""
    return all(
        not any(map(str.isalnum, line)) or _SEPARATOR.match(line) or _VARIABLE.match(line) for _, line in part.lines()
    )


def split(
    file: str, text: str, at: float, readers: Sequence[Reader], origin: Sequence[int] | None = None
) -> Iterator[tuple[Reader | None, Part]]:
    """The parts in order, each with its reader. None: in no known format. The function cleans `text` first.

    `origin` has the number (from 0) of the line in the file from which each line comes, if lines were joined.
    """
    text = clean(text)
    block, others = first_block(without_containers(exported(_TRAILING.sub("", text) if " \n" in text else text)))
    plain, before = without_markup(block)
    whole = replace(Part(file, 1, plain, at).unframed(plain, origin), before=before)
    kept = lines_of_outputs(plain, before)
    yield from _whole(whole.unframed(*kept) if kept else whole, tuple(readers))
    if others:
        yield OTHER_HOSTS, Part(file, 1, "\n".join(others), at)


def _whole(whole: Part, readers: tuple[Reader, ...]) -> Iterator[tuple[Reader | None, Part]]:
    """The parts of a clean text. A frame around all lines is removed, unless it belongs to the output.

    The beginning of the text decides.
    """
    head = whole.text[: whole.text.rfind("\n", 0, _HEAD) + 1] if len(whole.text) > _HEAD else whole.text
    prefixed = list(uniform_frames(head))
    strings = None if prefixed else string_frame(head)
    frames = [strings] if strings else prefixed
    parts = list(_cut(replace(whole, text=head), readers, _DEEPEST)) if frames else []
    best, depth = _known_lines(parts), 0
    belongs = _belongs(parts, bool(strings))
    for number, frame in enumerate(() if belongs and strings else frames, 1):
        inner = list(_cut(whole.unframed(frame.text, frame.origin), readers, _DEEPEST - 1))
        known = _known_lines((reader, part) for reader, part in inner if reader and not (belongs and reader.lines))
        # a tool's output that was sent to the log of the kernel: nearly all lines are of the tool
        if known and (2 * known > head.count("\n") if belongs else known >= best):
            best, depth = known, number
    chosen = islice(uniform_frames(whole.text), max(depth - 1, 0), None) if depth else iter(())
    found = string_frame(whole.text) if depth and strings else next(chosen, None)
    if found:
        yield from _cut(whole.unframed(found.text, found.origin), readers, _DEEPEST - 1)
    else:
        yield from _cut(whole, readers, _DEEPEST)


def _belongs(parts: Iterable[tuple[Reader | None, Part]], strings: bool) -> bool:
    """Whether the frame belongs to the output: the prefix of a log, or the strings of a JSON text."""
    if strings:
        known = (part for reader, part in parts if reader and not reader.lines)
        return any(not is_item(part.text.split("\n", 1)[0]) for part in known)
    return any(reader and reader.lines for reader, _ in parts)


def _cut(whole: Part, readers: tuple[Reader, ...], depth: int) -> Iterator[tuple[Reader | None, Part]]:
    """The parts of a clean text."""
    logs: dict[Reader, list[_Stretch]] = {}
    for stretch in _stretches(whole.text, readers):
        if stretch.reader and stretch.reader.lines:
            logs.setdefault(stretch.reader, []).append(stretch)
            continue
        yield from _interleaved(whole, logs)
        logs = {}
        piece = _part(whole, stretch.line, whole.text[stretch.begin : stretch.end])
        if piece.text.strip():
            yield from ((stretch.reader, piece),) if stretch.reader else _strip_unknown(piece, readers, depth)
    yield from _interleaved(whole, logs)


def _strip_unknown(piece: Part, readers: tuple[Reader, ...], depth: int) -> Iterator[tuple[Reader | None, Part]]:
    """Lines in no known format: the parts that become known if the frame around the lines is removed, or the lines
    within an output whose beginning is missing.
    """
    short = len(piece.text) < _SHORT
    excerpt: list[tuple[Reader | None, Part]] = []
    if short and depth >= 0 and (loose := _loose(readers)):
        excerpt = [
            (reader if reader and _understands(reader, part) else None, part) for reader, part in _cut(piece, loose, 0)
        ]
    best, known = excerpt, _known_lines(excerpt)
    if short and depth >= 0 and (lists := list(_of_finders(piece, readers, depth))):
        best, known = max((best, known), (lists, _known_lines(lists)), key=itemgetter(1))
    frames = strip_frames(piece.text, depth == _DEEPEST) if depth > 0 else iter(())
    for frame in islice(frames, None if short else _FEW):
        inner = [*_cut(piece.unframed(frame.text, frame.origin), readers, depth - 1 if short else -1)]
        if (lines := _known_lines(inner)) > known:
            best, known = [*inner, *_other_hosts(piece, frame)], lines
            if all(reader for reader, _ in inner):
                break
    yield from best if known else ((None, piece),)


def _of_finders(piece: Part, readers: tuple[Reader, ...], depth: int) -> Iterator[tuple[Reader | None, Part]]:
    """The lines that readers find in the piece, and the pieces between them. Empty: they find none."""
    found = [(first, end, reader) for reader in readers if reader.find for first, end in reader.find(piece)]
    lines, behind = piece.text.split("\n"), 0
    for first, end, reader in sorted(found, key=itemgetter(0)):
        if first < behind:
            continue
        yield from _rest(piece, lines, behind, first, readers, depth)
        yield reader, _part(piece, first, "\n".join(lines[first:end]))
        behind = end
    if behind:
        yield from _rest(piece, lines, behind, len(lines), readers, depth)


def _rest(
    piece: Part, lines: Sequence[str], first: int, end: int, readers: tuple[Reader, ...], depth: int
) -> Iterator[tuple[Reader | None, Part]]:
    """The lines between the lists of a piece."""
    rest = _part(piece, first, "\n".join(lines[first:end]))
    if rest.text.strip():
        yield from _strip_unknown(rest, readers, depth - 1)


def _understands(reader: Reader, part: Part) -> bool:
    """Whether lines that look like those of the reader give a record."""
    return any(True for _ in reader.read(part))


def _other_hosts(piece: Part, frame: Frame) -> Iterator[tuple[Reader, Part]]:
    if frame.hosts:
        yield OTHER_HOSTS, replace(piece, text="\n".join(frame.hosts))


@cache
def _loose(readers: tuple[Reader, ...]) -> tuple[Reader, ...]:
    """The readers that know lines within an output. Empty if these are such readers."""
    return tuple(replace(one, begin=one.any_line, any_line="") for one in readers if one.any_line)


def _known_lines(parts: Iterable[tuple[Reader | None, Part]]) -> int:
    return sum(part.text.rstrip("\n").count("\n") + 1 for reader, part in parts if reader)


class _Stretch(NamedTuple):  # fast to create: alternating logs have hundreds of thousands
    """Adjacent lines of one reader: their position in the text, and the number of the first line (from 0)."""

    reader: Reader | None
    begin: int
    end: int
    line: int


def _stretches(text: str, readers: Sequence[Reader]) -> Iterator[_Stretch]:
    begin = line = 0
    last: Reader | None = None
    for start, number, reader in _marks(text, tuple(readers)):
        before = text.rfind("\n", 0, max(start - 1, 0)) + 1
        if reader is None and (last is None or begin == before) and _RULED.match(text, before):
            continue  # the rule below the heading of a table
        if reader is None or reader is not last:
            yield _Stretch(last, begin, start, line)
            begin, line, last = start, number, reader
    yield _Stretch(last, begin, len(text), line)


def _interleaved(whole: Part, logs: Mapping[Reader, Sequence[_Stretch]]) -> Iterator[tuple[Reader, Part]]:
    """Logs that several programs wrote to one file at the same time: one part per reader, with the lines of others
    empty.
    """
    for reader, stretches in logs.items():
        yield reader, _part(whole, stretches[0].line, "".join(_pieces(whole.text, stretches)))


def _part(whole: Part, line: int, text: str) -> Part:
    return replace(whole, first=whole.first + line, text=text)


def _pieces(text: str, stretches: Sequence[_Stretch]) -> Iterator[str]:
    line = stretches[0].line
    for stretch in stretches:
        piece = text[stretch.begin : stretch.end]
        yield "\n" * (stretch.line - line)
        yield piece
        line = stretch.line + piece.count("\n")


def _marks(text: str, readers: tuple[Reader, ...]) -> Iterator[tuple[int, int, Reader | None]]:
    """Position and number (from 0) of each line that begins an output, with its reader; None: a separator."""
    known: dict[str, re.Pattern[str] | None] = {}
    named = {f"f{number}": reader for number, reader in enumerate(readers)}
    number = start = 0
    while start < len(text):
        end = text.find("\n", start + _BLOCK)
        forms = shape(text[start : end if end >= 0 else len(text)]).split("\n")
        for form in forms:
            pattern = known.get(form, _NEVER)
            if pattern is _NEVER:
                short = len(form) < _LONGEST
                pattern = _shape_beginning(readers, form) if short else _beginning_pattern(readers, form)
                if short and len(known) < _MOST_SHAPES:
                    known[form] = pattern
            if pattern and (found := pattern.match(text, start)):
                yield start, number, named.get(found.lastgroup or "")
            start += len(form) + 1
            number += 1


def _beginning_pattern(readers: tuple[Reader, ...], form: str) -> re.Pattern[str] | None:
    """The expression of all readers whose outputs can begin with a line of this shape. None if there are none."""
    some, each = _shape_patterns(readers)
    if form.startswith(_FAR) or not some.match(form):
        return None
    return _expression(readers, tuple(number for number, loose in enumerate(each) if loose.match(form)))


_shape_beginning = lru_cache(_KEPT_SHAPES)(_beginning_pattern)


@cache
def _shape_patterns(readers: tuple[Reader, ...]) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    """A pattern for the shapes of all lines that can begin an output or are separators, and one such pattern per
    reader.
    """
    each = [shape_expression(reader.begin) for reader in readers]
    some = "|".join(f"(?:{one})" for one in (*each, shape_expression(_BETWEEN)))
    return re.compile(some, re.MULTILINE), tuple(re.compile(one, re.MULTILINE) for one in each)


@cache
def _expression(readers: tuple[Reader, ...], numbers: tuple[int, ...]) -> re.Pattern[str]:
    """One pattern for these readers and the separators. Its groups have the names f0, f1 ... and between."""
    begins = "".join(f"(?P<f{number}>{readers[number].begin})|" for number in numbers)
    return re.compile(f"{begins}(?P<between>{_BETWEEN})", re.MULTILINE)
