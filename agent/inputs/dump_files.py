"""What people hold of a machine: files, folders, archives, a paste, as one host in memory."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from ...probes.host.entries import Entry, Folder, Link, Refused
from ...probes.host.recorded import Recorded

BIGGEST = 256 << 20  # bytes of one file: a capture of a large node has a few MB, a log of weeks some hundred
STDIN = "-"
CAPTURE = "linkgauge capture "  # how the first line of a capture begins
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # that text does not have
_TREE = ("sys", "proc")  # what hwloc-gather-topology and sosreports keep of a machine as it was


def collect(paths: Sequence[str]) -> Recorded:
    """All files below the paths, by their names relative to a single folder, else behind the path that was given.

    What cannot be read is an entry that says why. OSError where a path itself is not there; ValueError, with a
    sentence, where an archive that was named cannot be read.
    """
    entries: dict[str, Entry] = {}
    for path in paths:
        if path == STDIN:
            entries["standard input"] = _text(sys.stdin.buffer.read(BIGGEST + 1))
        elif os.path.isdir(path):
            before = "" if len(paths) == 1 else os.path.basename(os.path.normpath(path)) + "/"
            entries.update((f"{before}{name}", entry) for name, entry in _of_folder(path))
        else:
            entries.update(_of_file(os.path.basename(path) or path, path, named=True))
    recorded = Recorded(int(time.time()), entries)
    recorded.origin = "dumps"
    return recorded


def trees(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """Where in a collection machines' trees stand: "" or "node1/", below which are sys and proc; the nearest first."""
    heads = {name.split(f"{_TREE[0]}/", 1)[0] for name in entries if name.startswith("sys/") or "/sys/" in name}
    found = [head for head in heads if any(name.startswith(f"{head}{_TREE[1]}/") for name in entries)]
    return tuple(sorted(found, key=lambda head: (len(head), head)))


def below(entries: Mapping[str, Entry], head: str) -> Recorded:
    """The machine whose tree stands there, and beside it the files that are in no machine's tree."""
    trees_of = trees(entries)
    beside = {name: entry for name, entry in entries.items() if not any(map(name.startswith, trees_of))}
    own = {name.removeprefix(head): entry for name, entry in entries.items() if name.startswith(head)}
    inside = {**beside, **own}
    for name in [*inside]:  # each folder is there whole
        while name:
            name = name.rpartition("/")[0]
            inside.setdefault(name, Folder())
    recorded = Recorded(int(time.time()), inside)
    recorded.origin = "dumps"
    return recorded


def _of_folder(folder: str) -> Iterator[tuple[str, Entry]]:
    for here, folders, names in os.walk(folder):
        for name in (*(one for one in folders if os.path.islink(os.path.join(here, one))), *names):
            path = os.path.join(here, name)
            shown = os.path.relpath(path, folder)
            if os.path.islink(path):
                yield shown, Link(os.readlink(path))
            else:
                yield from _of_file(shown, path).items()
        if not folders and not names:
            yield os.path.relpath(here, folder), Folder()


def _of_file(name: str, path: str, named: bool = False) -> Mapping[str, Entry]:
    """A file, or what is in an archive. What was `named` by the user must be readable."""
    try:
        told = os.stat(path)
        if not stat.S_ISREG(told.st_mode):
            return {name: Refused(None, "not a plain file")}
        if told.st_size > BIGGEST:
            return {name: Refused(None, f"larger than {BIGGEST >> 20} MB, which no capture or dump is")}
        with open(path, "rb") as file:
            content = file.read(BIGGEST + 1)
    except OSError as error:
        if named:
            raise
        return {name: Refused(error.errno, error.strerror or str(error))}
    if content.startswith(CAPTURE.encode()):
        return {name: _text(content)}
    from ...probes.dumps.core.archives import is_archive, unpack  # takes long to import

    if not is_archive(content[:512]):
        return {name: _text(content)}
    try:
        inside = unpack(name, content)
    except ValueError as wrong:
        if named:
            raise
        return {name: Refused(None, str(wrong))}
    return {f"{name}/{inner}": one.rstrip() if isinstance(one, str) else one for inner, one in inside.items()}


def _text(content: bytes) -> Entry:
    if len(content) > BIGGEST:
        return Refused(None, f"larger than {BIGGEST >> 20} MB, which no capture or dump is")
    head = content[:4096]
    if len(head) - len(head.translate(None, _CONTROLS)) > len(head) // 20:  # logs of crashed machines have some zeros
        return Refused(None, "a binary file; captures and dumps are text")
    tail = content[-4096:]
    end = len(content) - len(tail) + len(tail.rstrip())
    return str(memoryview(content)[:end], "utf-8", "replace")  # no copy of hundreds of MB
