"""Dumps of a machine (files, folders, archives, standard input) as one host in memory."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...probes.host.entries import Entry, Folder, Link, UnreadableFile
from ...probes.host.recorded import Copied, Recorded
from ...probes.host.texts import BIGGEST, TOO_BIG, decoded, text_of

STDIN = "-"
CAPTURE = "linkgauge capture "  # start of the first line of a capture
# Folders of /sys. hwloc-gather-topology, sosreports and tar copy them unchanged.
_OF_SYS = ("bus/", "class/", "devices/", "block/", "firmware/", "fs/", "kernel/", "module/")
_OF_PCI = ("sys/bus/pci/devices/", "sys/devices/pci")
_IN_TREE = re.compile(r"((?:[^/]+/)*?)(sys|proc)/(.*)", re.DOTALL)


def read_dumps(paths: Sequence[str]) -> Recorded:
    """Read all files below the paths. Names are relative to a single folder, else they begin with the given path.

    A file that cannot be read becomes an entry with the reason. Raises OSError if a given path does not exist, and
    ValueError with a message if a given archive cannot be read.
    """
    entries: dict[str, Entry] = {}
    for path in paths:
        if path == STDIN:
            entries["standard input"] = decoded(sys.stdin.buffer.read(BIGGEST + 1))
        elif os.path.isdir(path):
            files, folder = list(_of_folder(path)), os.path.basename(os.path.normpath(path))
            tree = folder == "sys" and any(name.startswith(_OF_SYS) for name, _ in files)  # the /sys of a machine
            before = "" if len(paths) == 1 and not tree else f"{folder}/"
            entries.update((f"{before}{name}", entry) for name, entry in files)
        else:
            entries.update(_of_file(os.path.basename(path) or path, path, named=True))
    recorded = Recorded(int(time.time()), entries)
    recorded.origin = "dumps"
    return recorded


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
    inside = {**beside, **own}
    for name in [*inside]:  # add every parent folder
        while (name := name.rpartition("/")[0]) not in inside:
            inside[name] = Folder()
    return Copied(int(time.time()), inside)


def has_pci(machine: Recorded) -> bool:
    """Whether the files include the PCI functions, so that the machine can be evaluated as from its own /sys."""
    return any(name.startswith(_OF_PCI) for name in machine.entries)


def with_dumps(machine: Recorded, entries: Mapping[str, Entry]) -> Recorded:
    """A capture, and dumps of the same machine."""
    both = Recorded(machine.taken, {**entries, **machine.entries}, machine.calls)
    both.origin = machine.origin
    return both


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
            return {name: UnreadableFile(None, "not a plain file")}
        if status.st_size > BIGGEST:
            return {name: TOO_BIG}
        with open(path, "rb") as file:
            content = file.read(BIGGEST + 1)
    except OSError as error:
        if named:
            raise
        return {name: UnreadableFile(error.errno, error.strerror or str(error))}
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
