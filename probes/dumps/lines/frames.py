"""Removes the frame around the lines of an output, so that they are lines of a tool again. Frames are quote marks of a
forum, host names (pdsh, clush), line numbers of grep, prefixes of logs and launchers, records of journals and
containers, and strings.

journalctl(1), dmesg(1); the log files of Docker (json-file) and of the container runtime interface (Kubernetes,
pkg/kubelet/kuberuntime/logs).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import NamedTuple

from .journal_records import journal_lines
from .json_text import loads
from .markup import without_markup
from .prefixes import OF_A_DEVICE, layers
from .quoted_lines import unfolded

_QUOTE = re.compile(r"[ \t]{0,3}(?:>[ ]?){1,5}")
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
# A container's line with time and stream, or with time only; kubectl logs --prefix.
_STAMP = re.compile(
    rf"(?:{_ISO}[.,]?[0-9]{{0,9}}(?:Z|[+-][0-9:]{{5}}) (?:(?:stdout|stderr) [FP] )?|\[?{_ISO}[.,]?[0-9]{{0,9}}\]? "
    r"|\[pod/[\w./-]{1,200}\] )"
)
_FILE = re.compile(r"(?![0-9]+:)(?:/|\./)?[\w.+-]{1,80}(?:/[\w.+-]{1,80}){0,10}:(?=[\[A-Z<0-9])")
_TOOL = re.compile(  # a person names the tool before a line of its output; "nvme: probe of" is a line of the kernel
    r"(?:smartctl|nvme(?!: probe )|ibstat|ibv_devinfo|ibqueryerrors|perfquery|ethtool|mlxlink|nvidia-smi|rocm-smi"
    r"|amd-smi|lspci|dmesg|numactl|dcgmi|mdadm|zpool|ip link|rdma)(?: [\w/-]{1,20}){0,4}"
    r" ?(?::|=>|->|→|shows?:?|says:?|prints:?)[ ]{1,4}(?=\S)"
)
_RECORD = re.compile(r"\{[^\n]*\"stream\"[^\n]*\}[ \t]*(?:\n|$)")
_ANY_NUMBER = re.compile(r"([0-9]{1,8})[:-]")
_NUMBER = re.compile(r"([0-9]{1,8})[:-](?! )")
# cat -n, nl, less -N, the margin of an editor or of a web page
_MARGIN = re.compile(r"[ ]{0,8}([0-9]{1,7})(?:\t|[ ]{1,4}[|│][ ]?|[ ]{1,2}(?=\[)|(?=\[)|[ ]|$)")
# "node1: ", "node1 | ", "[node1] ", and "[1,0]<stdout>:" of mpirun with its job and rank
_HOST = re.compile(  # no attributes of sysfs, and no headlines of scripts
    r"(?!(?:(?:current|max)_link_\w{5}|[Cc]ard|[Dd]evice):)"
    rf"([A-Za-z0-9][\w.-]{{0,62}})(?::[ \t]|:$| \| ?)|\[(?!{OF_A_DEVICE})([A-Za-z][\w.-]{{0,62}})\]:?(?:[ ]|$)"
    r"|\[([0-9]{1,6},[0-9]{1,6})\]<std(?:out|err|diag)>:"
)
# "node1", "node[1-3,7] (4)" between two lines of dashes. Host names contain digits, headlines do not.
_HEADING = re.compile(
    r"^-{10,80}[ \t]*\n([A-Za-z][\w.-]{0,62}(?:[0-9]|\[[0-9,-]{1,200}\])[\w.,\[\]-]{0,200})(?: \([0-9]{1,5}\))?[ \t]*"
    r"\n-{10,80}[ \t]*$"
    r"|^([A-Za-z0-9][\w.-]{0,62}) \| (?:CHANGED|SUCCESS|FAILED)(?: \| rc=[0-9]{1,3})? >>[ \t]*$",
    re.MULTILINE,
)
# Marks of Markdown, bullets of lists, and notes behind a line. A row of a table becomes "name: value".
_MARK = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+•] |[0-9]{1,2}[.)] )(?=\S)|(?<!\*)\*\*(?!\*)|`|(?<![ \t])[ \t]*\\$")
_NOTE = re.compile(r"(?<![ \t])[ \t]+(?:\# |// |<[-=]{1,3}(?![>\w=-])|←|\u2b05).*$")
_CELL = r"[^|\s](?:[^|]{0,%d}[^|\s])?"
_ROW = re.compile(rf"^[ \t]*\|[ ]*({_CELL % 78})[ ]*\|[ ]*({_CELL % 198})(?:[ ]*\|)?[ \t]*$")
_FEWEST = 2  # the least number of lines with the same host name, or with line numbers
_CANDIDATES = 4
_SHARE = 0.5  # share of the lines with the same kind of prefix: a person writes lines above and below them


def first_block(text: str) -> tuple[str, tuple[str, ...]]:
    """The first block of a text with a block per host (clush -b, dshbak, ansible), and the names of the other hosts."""
    headings = list(_HEADING.finditer(text)) if _HEADING.match(text.lstrip()[:2000]) else []
    if len(headings) < 2:
        return text, ()
    end = headings[1].start()
    return text[:end] + "\n" * text.count("\n", end), tuple(found[1] or found[2] for found in headings[1:])


class Frame(NamedTuple):
    """A text without its frame, and the hosts whose lines are removed.

    `origin` has the number (from 0) of the framed line that each line comes from. None: each line is in its place.
    """

    text: str
    hosts: tuple[str, ...] = ()
    origin: Sequence[int] | None = None


def uniform_frames(text: str) -> Iterator[Frame]:
    """The text without what all its lines have in common before them, layer by layer."""
    yield from (Frame("\n".join(bare)) for bare in layers(text.split("\n")))


def without_containers(text: str) -> str:
    """The lines that a container wrote, if all lines are records of its log file."""
    if not _RECORD.match(text):
        return text
    lines = text.split("\n")
    bare = [_container(line) for line in lines]
    return "\n".join(bare) if all(a is not b or not b.strip() for a, b in zip(bare, lines, strict=True)) else text


def string_frame(text: str) -> Frame | None:
    """The text with its strings unfolded into lines. None: it has none, or it is a journal."""
    lines = text.split("\n")
    return _of_strings(unfolded(lines) if journal_lines(lines) == lines else None)


def _of_strings(strings: tuple[list[str], list[int]] | None) -> Frame | None:
    return Frame(without_markup("\n".join(strings[0]))[0], origin=strings[1]) if strings else None


def strip_frames(text: str, marks: bool = True) -> Iterator[Frame]:
    """Each possible text without its frame. Yields nothing if there is no frame.

    `marks`: also without bullets, notes and strings around the lines.
    """
    if (level := dedent(text)) != text:
        yield Frame(level)
    lines = text.split("\n")
    unrolled = journal_lines(lines)
    bare = [_without_prefix(line) if line is before else line for line, before in zip(unrolled, lines, strict=True)]
    if bare != lines:
        yield Frame("\n".join(bare))
    if (numbered := _without_numbers(bare)) is not None:
        yield Frame("\n".join(numbered))
    if unrolled == lines and (strings := _of_strings(unfolded(lines))):
        yield strings
    for plain in _plain(lines, bare) if marks else layers(lines, _SHARE):
        yield Frame("\n".join(plain))
    yield from _of_hosts(bare)


def _of_hosts(lines: list[str]) -> Iterator[Frame]:
    """The lines of each of the most frequent hosts. Those of other hosts are empty."""
    named = [_HOST.match(line) for line in lines]
    counts = Counter(found[found.lastindex or 0] for found in named if found)
    alone = sum(map(bool, map(str.strip, lines))) == 1  # then only a name with a digit is a host, not a word of prose
    likely = [
        name
        for name, count in counts.most_common()
        if count >= _FEWEST or (alone and any(map(str.isdecimal, name)) and not name.isdecimal())
    ]
    for name in likely[:_CANDIDATES]:
        others = frozenset(likely) - {name}
        texts = (_of_host(line, found, name, others) for line, found in zip(lines, named, strict=True))
        yield Frame("\n".join(texts), tuple(other for other in likely if other != name))


def _of_host(line: str, found: re.Match[str] | None, name: str, others: frozenset[str]) -> str:
    named = found[found.lastindex or 0] if found else ""
    return line[found.end() :] if found and named == name else "" if named in others else line


def _plain(lines: list[str], bare: list[str]) -> Iterator[list[str]]:
    """The lines without indentation, without prefixes, and without marks, each result once."""
    tried = [bare, lines]
    for plain in _each_plain(lines, bare):
        if plain not in tried:
            tried.append(plain)
            yield plain


def _each_plain(lines: list[str], bare: list[str]) -> Iterator[list[str]]:
    yield dedent("\n".join(bare)).split("\n")
    last = lines
    for last in layers(lines, _SHARE):
        yield last
    plain = _unmarked(bare)
    yield plain
    if last != bare:
        plain = _unmarked(last)
        yield plain
    yield _rows(plain)


def _unmarked(lines: list[str]) -> list[str]:
    """The lines without the marks of Markdown and without notes behind them."""
    plain = (_NOTE.sub("", line) or line for line in lines)  # a line that is a note stays
    return [_MARK.sub(lambda mark: mark["indent"] or "", line) for line in plain]


def _rows(lines: list[str]) -> list[str]:
    """Rows of a table with two columns as "name: value"."""
    return [_ROW.sub(r"\1: \2", line) for line in lines]


def _without_prefix(line: str) -> str:
    """A line without a quote mark, a container's time, a file name or the name of a tool."""
    if line.startswith("{"):
        line = _container(line)
    for frame in (_QUOTE, _STAMP, _FILE, _TOOL):
        if found := frame.match(line):
            return line[found.end() :]
    return line


def _container(line: str) -> str:
    try:
        record = loads(line)
    except ValueError:
        return line
    log = record.get("log") if isinstance(record, dict) and "stream" in record else None
    return log.rstrip("\n").replace("\n", " ") if isinstance(log, str) else line


def _without_numbers(lines: list[str]) -> list[str] | None:
    """The lines without the ascending line numbers of grep -n, cat -n or a pager; None if there are none."""
    full = [line for line in lines if line.strip()]
    fewest = min(_FEWEST, len(full))
    every = bool(full) and all(map(_ANY_NUMBER.match, full))  # then the lines may begin with blanks
    form = _ANY_NUMBER if every else _MARGIN if _have_margin(full) else _NUMBER
    last, seen = -1, 0
    for line in lines:
        if found := form.match(line):
            if int(found[1]) <= last:
                return None
            last, seen = int(found[1]), seen + 1
    return [form.sub("", line, count=1) for line in lines] if seen >= fewest > 0 else None


def _have_margin(full: list[str]) -> bool:
    """Whether each line has a number in a margin. In a table of numbers, most lines have another number behind it."""
    found = [(line, _MARGIN.match(line)) for line in full]
    rests = [line[one.end() :].lstrip() for line, one in found if one]
    return len(rests) == len(full) > 0 and 2 * sum(rest[:1].isdigit() for rest in rests) <= len(rests)
