"""The text format of a capture. It is sorted and holds one time, so that people can read and compare captures.

    linkgauge capture 1
    taken 2026-11-21T03:00:00Z

    [sys/devices/pci0000:50/0000:50:01.0]      a folder; `[...] ?`: not listed; `[...] ! 13 Permission denied`
    class = 0x060400                           a file; a JSON string if white space or control characters matter
    resource:                                  a file of several lines
    | 0x00000000fb000000 0x00000000fb01ffff
    driver -> ../../../bus/pci/drivers/nvidia  a symbolic link; without a target it is broken
    label ! 13 Permission denied               an unreadable file and the error number; "-" if there is none
    msi_irqs ?                                 a name in the folder that no source read

    @ ethtool eth0                             a call, and below it its records (models/facts/jsonl.py)
    ["Net",{"key":"eth0","max_speed":3125000000.0}]

    end 14                                     the number of lines above, which shows whether the file is complete

Paths contain no symbolic links. Each link is an entry in its own folder. A measurement that ran several times with the
same arguments is one call with the records of all runs, the first run first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import TypeAlias

from ...models.facts.jsonl import decode
from ...models.facts.units import as_utc
from ..parsing.parsers import shown
from .entries import NOT_RECORDED, UNASKED, UNLISTED, Entry, Folder, Link, UnreadableFile

_VERSION = 1
_TAKEN = re.compile(r"taken ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})Z")
_JSON = r'"(?:[^"\\]|\\.)*"'
_HEADER = re.compile(rf"\[({_JSON}|[^\"\]][^\]]*|)\](| .*)")
_ENTRY = re.compile(rf"({_JSON}|[^\s\"]\S*) (=|->|!|\?)(?: (.*))?")
_REFUSED = re.compile(r"(-|-?[0-9]{1,9}) (.*)")
_WORD = re.compile(rf"{_JSON}|[^\s\"]\S*")

Calls: TypeAlias = Mapping[tuple[str, ...], tuple[str, ...]]


def dump(taken: int, entries: Mapping[str, Entry], calls: Calls) -> str:
    """The text of a machine recorded at `taken`, seconds since 1970."""
    lines = [f"linkgauge capture {_VERSION}", f"taken {as_utc(taken)}", ""]
    below: dict[str, list[str]] = defaultdict(list)
    for path, entry in sorted(entries.items(), key=lambda item: item[0]):
        if isinstance(entry, Folder):
            below[path] += ()
        else:
            folder, _, name = path.rpartition("/")
            below[folder] += _entry_lines(_name(name), entry)
    for path in sorted(below):
        lines += [_header(path, entries.get(path)), *below[path], ""]
    for call in sorted(calls):
        lines += [" ".join(("@", *map(_name, call))), *calls[call], ""]
    return "\n".join((*lines, f"end {len(lines)}", ""))


def _header(path: str, entry: Entry | None) -> str:
    refused = entry.refused if isinstance(entry, Folder) else NOT_RECORDED
    head = _word(path, plain="]" not in path) if path else ""
    if refused is None:
        return f"[{head}]"
    return f"[{head}] ?" if refused == NOT_RECORDED else f"[{head}] ! {_refused(refused)}"


def _entry_lines(name: str, entry: str | UnreadableFile | Link) -> Iterator[str]:
    if isinstance(entry, UnreadableFile):
        yield f"{name} ! {_refused(entry)}"
    elif isinstance(entry, Link):
        yield f"{name}{_target(entry.target)}"
    elif "\n" in entry:
        yield f"{name}:"
        yield from map(_text_line, entry.split("\n"))
    else:
        yield f"{name} = {_word(entry)}"


def _target(target: str | UnreadableFile) -> str:
    if isinstance(target, UnreadableFile):
        return " ?" if target == NOT_RECORDED else f" -> ! {_refused(target)}"
    return f" -> {_word(target, plain=target[0] != '!')}" if target else " ->"


def _text_line(line: str) -> str:
    """One line of a text of several lines: unchanged, with tabs; as JSON if an editor would change it."""
    plain = line.replace("\t", " ").isprintable() and line == line.rstrip()
    return (f"| {line}" if line else "|") if plain else f"|{_json(line)}"


def _refused(refused: UnreadableFile) -> str:
    return f"{'-' if refused.code is None else refused.code} {_word(refused.why)}"


def _word(text: str, plain: bool = True) -> str:
    """The rest of a line: unchanged or as JSON."""
    plain = plain and text != "" and text[0] != '"' and text == text.strip() and text.isprintable()
    return text if plain else _json(text)


def _json(text: str) -> str:
    import json  # not msgspec: a text may have bytes that are not UTF-8, as lone surrogates

    return json.dumps(text)


def _name(text: str) -> str:
    """A word in a line: unchanged or as JSON."""
    return _word(text, plain=" " not in text and text[:1] not in ("[", "|", "@"))


def parse(text: str) -> tuple[int, dict[str, Entry], dict[tuple[str, ...], tuple[str, ...]]]:
    """The time of the record (seconds since 1970), the entries, the calls. Raises ValueError with the line and why."""
    lines = text.removesuffix("\n").split("\n")
    head = re.fullmatch(r"linkgauge capture ([0-9]{1,9})", lines[0])
    if not head:
        raise ValueError(f"line 1: a capture starts with 'linkgauge capture {_VERSION}', not with {shown(lines[0])}")
    if int(head[1]) != _VERSION:
        raise ValueError(f"line 1: this is capture format {head[1]}, and only format {_VERSION} is known here")
    if not re.fullmatch(r"end [0-9]{1,9}", lines[-1]):
        raise ValueError(f"line {len(lines)}: the capture was cut: it stops at {shown(lines[-1])}, not at its 'end'")
    if int(lines[-1][4:]) != len(lines) - 1:
        raise ValueError(f"line {len(lines)}: {shown(lines[-1])}, but there are {len(lines) - 1} lines above it")
    machine = _Machine()
    for number, line in enumerate(lines[1:-1], 2):
        try:
            machine.take(line)
        except ValueError as wrong:
            raise ValueError(f"line {number}: {wrong}") from None
        except RecursionError:
            raise ValueError(f"line {number}: is nested too deeply") from None
    if machine.taken is None:
        raise ValueError("line 2: 'taken' and a time are missing")
    texts = {path: "\n".join(several) for path, several in machine.texts.items()}
    calls = {call: tuple(records) for call, records in machine.calls.items()}
    return machine.taken, {**machine.entries, **texts}, calls


class _Machine:
    """The parsed machine, built line by line."""

    def __init__(self) -> None:
        self.taken: int | None = None
        self.entries: dict[str, Entry] = {}
        self.texts: dict[str, list[str]] = {}
        self.calls: dict[tuple[str, ...], list[str]] = {}
        self._folder: str | None = None
        self._text: list[str] | None = None
        self._records: list[str] | None = None

    def take(self, line: str) -> None:
        """Parse the next line. Raises ValueError."""
        if self.taken is None:
            self.taken = _time(line)
        elif not line:
            self._folder = self._text = self._records = None
        elif self._records is not None:
            decode(line)
            self._records.append(line)
        elif line[0] == "|":
            if self._text is None:
                raise ValueError(f"{shown(line)} continues no file")
            self._text.append(_string(line[1:]) if line[1:2] == '"' else line[2:])
        elif line[0] == "@":
            self._records = self._call(line)
        elif line[0] == "[":
            self._open(line)
        else:
            self._add(line)

    def _call(self, line: str) -> list[str]:
        words = line[2:]
        call = tuple(map(_string, _WORD.findall(words)))
        if " ".join(map(_name, call)) != words or line[1:2] != " " or call in self.calls:
            raise ValueError(f"{shown(line)} is not a call, or is there twice")
        return self.calls.setdefault(call, [])

    def _open(self, line: str) -> None:
        match = _HEADER.fullmatch(line)
        mark, _, why = match[2].removeprefix(" ").partition(" ") if match else ("", "", "")
        if not match or mark not in ("", "?", "!") or (mark != "!") == bool(why):
            raise ValueError(f"{shown(line)} is not a folder")
        self._folder = _string(match[1])
        self._text = None
        self._put(self._folder, UNLISTED if mark == "?" else Folder(_refusal(why) if why else None))

    def _add(self, line: str) -> None:
        """A file or a link in the current folder."""
        if self._folder is None:
            raise ValueError(f"{shown(line)} is in no folder")
        if line[-1] == ":" and (name := _WORD.fullmatch(line[:-1])):
            self._text = self.texts[self._path(name[0])] = []
            self._put(self._path(name[0]), "")
            return
        self._text = None
        match = _ENTRY.fullmatch(line)
        if not match:
            raise ValueError(f"{shown(line)} is neither a file nor a link")
        self._put(self._path(match[1]), _entry(match[2], match[3] or ""))

    def _path(self, name: str) -> str:
        name = _string(name)
        if name in ("", ".", "..") or "/" in name:
            raise ValueError(f"{shown(name)} is not a name")
        return f"{self._folder}/{name}" if self._folder else name

    def _put(self, path: str, entry: Entry) -> None:
        if path in self.entries:
            raise ValueError(f"{shown(path)} is there twice")
        self.entries[path] = entry


def _entry(mark: str, rest: str) -> Entry:
    if mark == "?" and not rest:
        return UNASKED
    if mark == "->":
        return Link(_refusal(rest[2:]) if rest.startswith("! ") else _string(rest))
    if mark == "!":
        return _refusal(rest)
    if mark == "=" and rest:
        return _string(rest)
    raise ValueError(f"{shown(f'{mark} {rest}')} does not describe a file")


def _refusal(text: str) -> UnreadableFile:
    match = _REFUSED.fullmatch(text)
    if not match:
        raise ValueError(f"{shown(text)} is not an error number and a reason")
    return UnreadableFile(None if match[1] == "-" else int(match[1]), _string(match[2]))


def _string(text: str) -> str:
    """The inverse of _word()."""
    if not text.startswith('"'):
        return text
    import json

    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise ValueError(f"{shown(text)} is not a JSON string")
    return value


def _time(line: str) -> int:
    match = _TAKEN.fullmatch(line)
    if not match:
        raise ValueError(f"{shown(line)} is not 'taken' and a time like 2026-11-21T03:00:00Z")
    return int(datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc).timestamp())
