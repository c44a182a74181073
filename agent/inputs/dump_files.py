"""Dumps of a machine (files, folders, archives, standard input) as one host in memory."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...probes.calls.bounded_read import read_up_to
from ...probes.host.entries import Entry, Folder, Link, UnreadableFile, free_name
from ...probes.host.recorded import Copied, Recorded
from ...probes.host.texts import BIGGEST, TOO_BIG, decoded, text_of

STDIN, _STDIN_NAME = "-", "standard input"
_WAITS = UnreadableFile(None, "the file waits for data or for another program: save its text in another file first")
CAPTURE = "linkgauge capture "  # start of the first line of a capture
# Folders of /sys. hwloc-gather-topology, sosreports and tar copy them unchanged.
_OF_SYS = ("bus/", "class/", "devices/", "block/", "firmware/", "fs/", "kernel/", "module/")
_OF_PCI = ("sys/bus/pci/devices/", "sys/devices/pci")
_IN_TREE = re.compile(r"((?:[^/]+/)*?)(sys|proc)/(.*)", re.DOTALL)


def read_dumps(paths: Sequence[str]) -> Recorded:
    """Read all files below the paths. Names are relative to a single folder, else they begin with the given path.

    A file or folder that cannot be read becomes an entry with the reason. Raises OSError if a given path does not
    exist, and ValueError with a message if a given archive cannot be read.
    """
    entries: dict[str, Entry] = {}
    numbers: dict[str, int] = {}
    for path, label in _labels(paths).items():
        if path == STDIN:
            files = [(label, decoded(sys.stdin.buffer.read(BIGGEST + 1)))]
        elif os.path.isdir(path):
            inner = list(_of_folder(path))
            tree = label.endswith("sys") and any(name.startswith(_OF_SYS) for name, _ in inner)  # the /sys of a machine
            before = "" if len(paths) == 1 and not tree else f"{label}/"
            files = [(f"{before}{name}", entry) for name, entry in inner]
        else:
            files = list(_of_file(label, path, named=True).items())
        for name, entry in files:
            entries[free_name(entries, name, numbers)] = entry
    recorded = Recorded(int(time.time()), _with_parents(entries))
    recorded.origin = "dumps"
    return recorded


def _labels(paths: Sequence[str]) -> Mapping[str, str]:
    """A name for each path, each path once: its last part, with as many folders before it as tell it from the others.

    A file cannot replace another one in the result, whatever their names are.
    """
    places = {path: _STDIN_NAME if path == STDIN else os.path.abspath(path) for path in paths}
    given = {place: path for path, place in reversed(places.items())}
    return {path: _short(place, given) for place, path in reversed(given.items())}


def _short(place: str, places: Iterable[str]) -> str:
    """The shortest end of a path that no other one of these paths has."""
    parts, others = place.split("/"), [f"/{one}" for one in places if one != place]
    ends = ("/".join(parts[-number:]) for number in range(1, len(parts)))
    return next((end for end in ends if not any(one.endswith(f"/{end}") for one in others)), place.strip("/") or place)


def _with_parents(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries, and every folder above them."""
    inside = {**entries}
    for name in entries:
        while (name := name.rpartition("/")[0]) not in inside:
            inside[name] = Folder()
    return inside


def machine_prefixes(entries: Iterable[str]) -> tuple[str, ...]:
    """The prefixes at which machines' file systems start: "" or "node1/"; shortest first. Each has a sys folder."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in entries:
        if place := _IN_TREE.fullmatch(name):
            head, folder, rest = place.groups()
            found[head].add("tree" if folder == "sys" and rest.startswith(_OF_SYS) else folder)
    machines = (head for head, parts in found.items() if "tree" in parts or {"sys", "proc"} <= parts)
    return tuple(sorted(machines, key=lambda head: (len(head), head)))


def machine_at(entries: Mapping[str, Entry], prefixes: Sequence[str]) -> Recorded:
    """The machine with the first prefix, and all files that belong to no machine."""
    head, machines = prefixes[0], tuple(prefixes)
    beside = {name: entry for name, entry in entries.items() if not name.startswith(machines)}
    own = {name.removeprefix(head): entry for name, entry in entries.items() if name.startswith(head)}
    inside, numbers = dict(own), dict[str, int]()
    for name, entry in beside.items():
        inside[name if isinstance(entry, Folder) else free_name(inside, name, numbers)] = entry
    return Copied(int(time.time()), _with_parents(inside))


def has_pci(machine: Recorded) -> bool:
    """Whether the files include the PCI functions, so that the machine can be evaluated as from its own /sys.

    A folder of /sys that this user may not read may hold them.
    """
    return any(
        name.startswith(_OF_PCI) or (isinstance(entry, Folder) and entry.refused and name.startswith("sys/"))
        for name, entry in machine.entries.items()
    )


def _of_folder(folder: str) -> Iterator[tuple[str, Entry]]:
    """The files below a folder, and the folders that cannot be read. Raises OSError for the folder itself."""
    refused: list[OSError] = []
    for here, folders, names in os.walk(folder, onerror=refused.append):
        for name in (*(one for one in folders if os.path.islink(os.path.join(here, one))), *names):
            path = os.path.join(here, name)
            shown = os.path.relpath(path, folder)
            if os.path.islink(path):
                yield shown, Link(os.readlink(path))
            else:
                yield from _of_file(shown, path).items()
        if not folders and not names:
            yield os.path.relpath(here, folder), Folder()
    for error in refused:
        if error.filename == folder:
            raise error
        yield os.path.relpath(error.filename, folder), Folder(UnreadableFile(error.errno, error.strerror or str(error)))


def _of_file(name: str, path: str, named: bool = False) -> Mapping[str, Entry]:
    """A file, or the members of an archive. `named`: the user gave this path, so errors are raised."""
    try:
        content = _content(path)
    except OSError as error:
        if named:
            raise
        return {name: UnreadableFile(error.errno, error.strerror or str(error))}
    if isinstance(content, UnreadableFile):
        return {name: content}
    if content.startswith(CAPTURE.encode()):
        return {name: decoded(content)}
    from ...probes.dumps.core.archives import is_archive, unpack  # slow to import

    if not is_archive(content[:512]):
        return {name: text_of(name, content)}
    try:
        return {f"{name}/{inner}": entry for inner, entry in unpack(name, content).items()}
    except ValueError as wrong:
        if named:
            raise
        return {name: UnreadableFile(None, str(wrong))}


def _content(path: str) -> bytes | UnreadableFile:
    """The content of a plain file. Raises OSError.

    /proc/kmsg and trace_pipe wait for data and have no end, and another program can hold a file with a lease. Without
    blocking, both give EAGAIN.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a device can start it
        return UnreadableFile(None, "not a plain file")
    try:
        with open(path, "rb", buffering=0, opener=_without_blocking) as file:
            if os.fstat(file.fileno()).st_size > BIGGEST:
                return TOO_BIG
            content = read_up_to(file.fileno(), BIGGEST)
            if len(content) <= BIGGEST:  # read_up_to returns what is there: is it all?
                os.read(file.fileno(), 1)
    except BlockingIOError:
        return _WAITS
    return content


def _without_blocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
