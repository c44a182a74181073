"""A recorded machine: a tree in memory that answers reads as the machine did. capture_format.py has its text format."""

from __future__ import annotations

import errno
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...models.facts.jsonl import decode
from ...models.facts.reason import Reason
from ...models.facts.records import Record
from ...models.report import Origin
from ..calls.child import unanswered
from . import capture_format
from .entries import NOT_RECORDED, UNLISTED, Entry, Folder, Link, UnreadableFile
from .host import Unreadable, follow

Names = list[str]  # inside the class, `list` is a method


def parse(text: str) -> Recorded:
    """The machine in the text of a capture. Raises ValueError with the line and why it is wrong."""
    return Recorded(*capture_format.parse(text))


def dump(recorded: Recorded) -> str:
    """The text of a machine. parse() returns the same machine."""
    return capture_format.dump(recorded.taken, recorded.entries, recorded.calls)


@dataclass
class Recorded:
    """A Host that reads a capture.

    `entries`: by path without symbolic links. `calls`: name and arguments to encoded records (models/facts/jsonl.py).
    """

    taken: int  # seconds since 1970
    entries: Mapping[str, Entry]
    calls: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    origin: Origin = field(default="capture", init=False)
    _folders: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _names: dict[str, Names] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._names = _names(self.entries)
        # The paths below an unlisted folder already imply the folder. Its own entry is redundant.
        needed = (one for one in self.entries.items() if one[1] != UNLISTED or one[0] and one[0] not in self._names)
        self.entries = dict(needed)

    def read(self, path: str) -> str | None:
        entry = self._entry(self._real(path))
        if entry is None or isinstance(entry, str):
            return entry
        refused = entry if isinstance(entry, UnreadableFile) else entry.refused
        if refused is None:
            refused = UnreadableFile(errno.EISDIR, os.strerror(errno.EISDIR))
        raise Unreadable(path, refused.code, refused.why)

    def list(self, path: str) -> Names:
        real = self._real(path)
        entry = self._entry(real)
        if not isinstance(entry, Folder):
            return []
        if entry.refused:
            raise Unreadable(path, entry.refused.code, entry.refused.why)
        return self._names.get(real, []).copy()

    def resolve(self, path: str) -> str | None:
        real = self._real(path)
        return None if self._entry(real) is None else real

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        """The recorded records of the call. A call that was not recorded gives a NotChecked."""
        lines = self.calls.get((what, *args))
        if lines is None:
            yield unanswered(what, Reason.OTHER, NOT_RECORDED.why)
        else:
            yield from map(decode, lines)

    def now(self) -> float:
        return self.taken

    def _real(self, path: str) -> str:
        """The path without symbolic links. The path need not exist."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = follow(folder, self._target)
        real = f"{self._folders[folder]}/{name}" if self._folders[folder] else name
        return follow(real, self._target) if name in ("", ".", "..") or self._target(real) else real

    def _target(self, path: str) -> str | None:
        """The target of a link. None: not a link, or a broken link."""
        entry = self.entries.get(path)
        if not isinstance(entry, Link):
            return None
        if isinstance(entry.target, UnreadableFile):
            raise Unreadable(path, entry.target.code, entry.target.why)
        return entry.target or None

    def _entry(self, real: str) -> str | UnreadableFile | Folder | None:
        """The entry at a path. None: no entry, or a broken link."""
        entry = self.entries.get(real)
        if entry is None and (real in self._names or not real):
            return UNLISTED
        return None if isinstance(entry, Link) else entry


def _names(paths: Iterable[str]) -> dict[str, Names]:
    """The sorted names in each folder. The keys include folders that exist only as part of longer paths."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        while path:
            path, _, name = path.rpartition("/")
            if name in names[path]:
                break
            names[path].add(name)
    return {folder: sorted(below) for folder, below in names.items()}


class Copied(Recorded):
    """The files of a machine in a folder or an archive. Nothing can be called, as under `--root`.

    A folder that could not be read hides every path below it: they may exist.
    """

    def _entry(self, real: str) -> str | UnreadableFile | Folder | None:
        entry, above = super()._entry(real), real
        while entry is None and above:
            above = above.rpartition("/")[0]
            if isinstance(hidden := self.entries.get(above), Folder) and hidden.refused:
                raise Unreadable(real, hidden.refused.code, hidden.refused.why)
        return entry

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        how = "run on the machine itself, or make a capture of it"
        yield unanswered(what, Reason.OTHER_CONTEXT, "only the files of the machine are here", how)


class Replayed(Recorded):
    """A recorded machine with the current time, for services: they compare the ages of records with the time."""

    def now(self) -> float:
        return time.time()
