"""Dumps of a machine (files, folders, archives, standard input) as one host in memory."""

from __future__ import annotations

import codecs
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from ...probes.host.entries import Entry, Folder, Link, Refused
from ...probes.host.recorded import Recorded

BIGGEST = 256 << 20  # bytes of one file: the capture of a large node has a few MB, a log of weeks some hundred MB
STDIN = "-"
CAPTURE = "linkgauge capture "  # start of the first line of a capture
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # control characters that do not occur in text
_TREE = ("sys", "proc")  # folders that hwloc-gather-topology and sosreports copy unchanged


def read_dumps(paths: Sequence[str]) -> Recorded:
    """Read all files below the paths. Names are relative to a single folder, else they begin with the given path.

    A file that cannot be read becomes an entry with the reason. Raises OSError if a given path does not exist, and
    ValueError with a message if a given archive cannot be read.
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


def machine_prefixes(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """The prefixes at which machines' file systems start: "" or "node1/", each with sys and proc; shortest first."""
    heads = {name.split(f"{_TREE[0]}/", 1)[0] for name in entries if name.startswith("sys/") or "/sys/" in name}
    found = [head for head in heads if any(name.startswith(f"{head}{_TREE[1]}/") for name in entries)]
    return tuple(sorted(found, key=lambda head: (len(head), head)))


def machine_at(entries: Mapping[str, Entry], head: str) -> Recorded:
    """The machine with this prefix, and all files that belong to no machine."""
    prefixes = machine_prefixes(entries)
    beside = {name: entry for name, entry in entries.items() if not any(map(name.startswith, prefixes))}
    own = {name.removeprefix(head): entry for name, entry in entries.items() if name.startswith(head)}
    inside = {**beside, **own}
    for name in [*inside]:  # add every parent folder
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
    """A file, or the members of an archive. `named`: the user gave this path, so errors are raised."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return {name: Refused(None, "not a plain file")}
        if status.st_size > BIGGEST:
            return {name: Refused(None, f"larger than {BIGGEST >> 20} MB, the limit of captures and dumps")}
        with open(path, "rb") as file:
            content = file.read(BIGGEST + 1)
    except OSError as error:
        if named:
            raise
        return {name: Refused(error.errno, error.strerror or str(error))}
    if content.startswith(CAPTURE.encode()):
        return {name: _text(content)}
    from ...probes.dumps.core.archives import is_archive, unpack  # slow to import

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
        return Refused(None, f"larger than {BIGGEST >> 20} MB, the limit of captures and dumps")
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # redirected output of PowerShell
        return content.decode("utf-16", "replace").rstrip()
    head = content[:4096]
    if len(head) - len(head.translate(None, _CONTROLS)) > len(head) // 20:  # logs of crashed machines have some zeros
        return Refused(None, "a binary file; captures and dumps are text")
    tail = content[-4096:]
    end = len(content) - len(tail) + len(tail.rstrip())
    return str(memoryview(content)[:end], "utf-8", "replace")  # does not copy hundreds of MB
