"""Resolve the input of a report: this machine, a root, a capture or dumps. Anything else raises BadInput."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ...probes.calls.child import Children
from ...probes.host.entries import Entry, Folder, Link, UnreadableFile
from ...probes.host.host import Host, exists
from ...probes.host.live import Live
from ...probes.host.recorded import Recorded, Replayed, parse
from ...probes.host.texts import BINARY
from ..measuring.session import NOTHING, MeasurementOptions, Session
from ..pipeline.registry import SOURCES, TOOLS
from ..pipeline.source import Source
from . import dump_files
from .site_file import BadInput

_ROOT_SIGNS = ("sys", "proc")
_MACHINE = {"sys", "proc", "dev", "run", "etc", "usr", "var", "lib", "boot"}  # folders below the root of a machine
_LOGS = ("var/log/", "proc/driver/nvidia/")  # part of sosreports


class Input(Struct, frozen=True):
    """A host and the sources to read from it."""

    host: Host
    readers: tuple[Source, ...]
    here: bool = False  # the machine that we run on; only this one may be measured

    def session(self, options: MeasurementOptions) -> Session:
        """A measurement session. A capture replays its own measurement; other recordings are never measured."""
        return Session(options if self.here or isinstance(self.host, Recorded) else NOTHING, self.host)


def of(root: str, source: Sequence[str], with_tools: bool = False) -> Input:
    """The input that the options --root, --from and --with-tools name. Raises BadInput."""
    if source and root != "/":
        raise BadInput("--from and --root exclude each other: one is a recording, the other a machine")
    if with_tools and (source or root != "/"):
        raise BadInput("--with-tools runs the tools of this machine: leave out --from and --root")
    found = from_paths(source) if source else live(root)
    return replace(found, readers=(*found.readers, *TOOLS)) if with_tools else found


def live(root: str, children: Children | None = None) -> Input:
    """The input for this machine, or for the one whose root is mounted at `root`. Raises BadInput."""
    if root != "/":
        _check_folder(root, "--root")
        if not any(os.path.isdir(os.path.join(root, name)) for name in _ROOT_SIGNS):
            raise BadInput(f"--root {root}: holds neither sys nor proc: mount the host's root there")
    return Input(Live(root, children=children), SOURCES, here=root == "/")


def replayed(path: str) -> Host:
    """A capture whose clock runs on from now, for the service. Raises BadInput."""
    host = from_paths((path,)).host
    if not isinstance(host, Recorded) or host.origin != "capture":
        raise BadInput(f"--from {path}: not a capture; 'linkgauge diagnose --from' reads outputs of tools")
    return Replayed(host.taken, host.entries, host.calls)


def from_paths(paths: Sequence[str]) -> Input:
    """A capture, or files, folders and archives of dumps; "-" is standard input. Raises BadInput."""
    shown = ", ".join(paths)
    for path in paths:
        if path != dump_files.STDIN:
            _mode(path, "--from")
    try:
        collected = dump_files.read_dumps(paths)
    except OSError as error:
        raise BadInput(f"--from {error.filename or shown}: {error.strerror}") from None
    except ValueError as wrong:
        raise BadInput(f"--from {shown}: {wrong}") from None
    files = {name: entry for name, entry in collected.entries.items() if not isinstance(entry, Folder) or entry.refused}
    if not files:
        raise BadInput(f"--from {shown}: the folder is empty: put dumps into it (output of nccl-tests ...)")
    if len(files) == 1 and len(paths) == 1 and not os.path.isdir(paths[0]):
        return _single_file(shown, collected, *files.items())
    captures = sorted(name for name, entry in files.items() if _is_capture(entry))
    prefixes = dump_files.machine_prefixes(collected.entries)
    if captures:
        return _capture_and_dumps(collected, files, captures, prefixes)
    return _tree(collected, prefixes) if prefixes else Input(collected, _dumps(sorted(files)))


def _capture_and_dumps(
    collected: Recorded, files: Mapping[str, Entry], captures: Sequence[str], prefixes: Sequence[str]
) -> Input:
    """A capture, and dumps of the same machine. Further captures and trees are of other machines.

    A dump may have the name of a file in the capture, so the two are not merged.
    """
    name, *others = captures
    text = files[name]
    try:
        machine = parse(f"{text}\n")
    except ValueError as wrong:
        raise BadInput(f"--from {name}: {wrong}") from None
    dumps = sorted(path for path in files if path not in captures and not _is_of_machine(path, prefixes))
    left = tuple(_other_machine(other, name) for other in (*others, *prefixes))
    return Input(machine, (*SOURCES, *_dumps(dumps, Recorded(machine.taken, collected.entries)), *left))


def _tree(collected: Recorded, prefixes: Sequence[str]) -> Input:
    """The files of a machine, and dumps beside them. A sosreport has a few files of /sys, and the PCI functions from
    lspci: its dumps are parts of a machine.
    """
    machine = dump_files.machine_at(collected.entries, prefixes)
    others = [name for name, entry in machine.entries.items() if _is_wanted(machine, name, entry)]
    if others and not dump_files.has_pci(machine):
        machine.origin = "dumps"
    left = tuple(_other_machine(head, prefixes[0]) for head in prefixes[1:] if not head.startswith(prefixes[0]))
    return Input(machine, (*SOURCES, *_dumps(sorted(others)), *left))


def _single_file(shown: str, collected: Recorded, file: tuple[str, Entry]) -> Input:
    """A capture, or a text. The verdict of a text in which nothing is known is unknown, as in a folder."""
    name, entry = file
    if isinstance(entry, UnreadableFile):
        raise BadInput(f"--from {shown}: {entry.why}")
    if _is_capture(entry):
        try:
            return Input(parse(f"{entry}\n"), SOURCES)
        except ValueError as wrong:
            raise BadInput(f"--from {shown}: {wrong}") from None
    return Input(collected, _dumps([name]))


def _is_capture(entry: Entry) -> bool:
    return isinstance(entry, str) and entry.startswith(dump_files.CAPTURE)


def _dumps(names: Iterable[str], folder: Host | None = None) -> tuple[Source, ...]:
    """One source for each dump file. It reads from the folder; by default that is the host of the report."""
    from ...probes.dumps.read import read_dump

    return tuple(
        Source("dump", partial(_read_in, folder, name) if folder else partial(read_dump, name)) for name in names
    )


def _read_in(folder: Host, name: str, host: Host) -> Iterator[Record]:
    from ...probes.dumps.read import read_dump

    del host
    yield from read_dump(name, folder)


def _other_machine(head: str, evaluated: str) -> Source:
    return Source("_other_machine", partial(_not_covered, head, evaluated))


def _not_covered(head: str, evaluated: str, host: Host) -> Iterator[Record]:
    why = f"these files are of another machine than those below {evaluated}; a report covers one machine"
    yield NotChecked(
        what="dump",
        subject=head or ".",
        reason=Reason.INCOMPLETE,
        detail=why,
        how="pass the files of one machine alone",
    )


def _is_of_machine(path: str, prefixes: Iterable[str]) -> bool:
    """Whether the file belongs to a tree at one of the prefixes. A tree at "" leaves the dumps beside it."""
    return any(path.startswith(head) and (head or not _is_dump(path)) for head in prefixes)


def _is_wanted(machine: Recorded, name: str, entry: Entry) -> bool:
    """Whether a file beside a machine's own files is a dump: one that is read, or one that is named as unread.

    Binary files and broken links are usual among the logs of a machine; other files that cannot be read are named.
    """
    from ...probes.dumps.read import recognise

    if isinstance(entry, str):
        return _is_dump(name) or (_is_log(name) and recognise(entry))
    refused = entry.refused if isinstance(entry, Folder) else entry
    if isinstance(refused, UnreadableFile):
        return _is_dump(name) or (_is_log(name) and refused != BINARY)
    return isinstance(entry, Link) and _is_dump(name) and not exists(machine, name)


def _is_dump(name: str) -> bool:
    """Whether the file is not part of the machine's own file system."""
    return name.partition("/")[0] not in _MACHINE


def _is_log(name: str) -> bool:
    """Whether the file is a log in the machine's file system, which only the dump readers parse."""
    return name.startswith(_LOGS)


def _check_folder(path: str, option: str) -> None:
    if _mode(path, option) != stat.S_IFDIR:
        raise BadInput(f"{option} {path}: not a folder")


def _mode(path: str, option: str) -> int:
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError as error:
        raise BadInput(f"{option} {path}: {error.strerror}") from None
