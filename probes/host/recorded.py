"""A machine as it was at one time: a tree in memory that answers as the machine did. Its text is in capture_text.py."""

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
from . import capture_format as capture_text
from .entries import NOT_RECORDED, UNLISTED, Entry, Folder, Link, Refused
from .host import Unreadable, follow

Names = list[str]  # inside the class, `list` is a method


def parse(text: str) -> Recorded:
    """The machine that a text holds (capture_text.py). ValueError says which line is wrong, and how."""
    return Recorded(*capture_text.parse(text))


def dump(recorded: Recorded) -> str:
    """The text of a machine; parse() gives the same machine again."""
    return capture_text.dump(recorded.taken, recorded.entries, recorded.calls)


@dataclass
class Recorded:
    """A Host over what was recorded. Entries by their paths without symbolic links; calls as lines of said_lines.py."""

    taken: int  # seconds since 1970
    entries: Mapping[str, Entry]
    calls: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    origin: Origin = field(default="capture", init=False)
    _folders: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _names: dict[str, Names] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._names = _names(self.entries)
        # A folder that was not listed and holds something stands in the paths below it: kept once, not twice.
        said = (item for item in self.entries.items() if item[1] != UNLISTED or item[0] and item[0] not in self._names)
        self.entries = dict(said)

    def read(self, path: str) -> str | None:
        entry = self._entry(self._real(path))
        if entry is None or isinstance(entry, str):
            return entry
        refused = entry if isinstance(entry, Refused) else entry.refused
        if refused is None:
            refused = Refused(errno.EISDIR, os.strerror(errno.EISDIR))
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
        """What was said then. A call that was not made then is not checked: it would have had an answer."""
        lines = self.calls.get((what, *args))
        if lines is None:
            yield unanswered(what, Reason.OTHER, NOT_RECORDED.why)
        else:
            yield from map(decode, lines)

    def now(self) -> float:
        return self.taken

    def _real(self, path: str) -> str:
        """The path without symbolic links, there or not."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = follow(folder, self._target)
        real = f"{self._folders[folder]}/{name}" if self._folders[folder] else name
        return follow(real, self._target) if name in ("", ".", "..") or self._target(real) else real

    def _target(self, path: str) -> str | None:
        """Where a link leads; None for what is none, and for one that leads nowhere."""
        entry = self.entries.get(path)
        if not isinstance(entry, Link):
            return None
        if isinstance(entry.target, Refused):
            raise Unreadable(path, entry.target.code, entry.target.why)
        return entry.target or None

    def _entry(self, real: str) -> str | Refused | Folder | None:
        """What is there; None: nothing."""
        entry = self.entries.get(real)
        if entry is None and (real in self._names or not real):
            return UNLISTED
        return None if isinstance(entry, Link) else entry


def _names(paths: Iterable[str]) -> dict[str, Names]:
    """The names in each folder, sorted. Folders that stand only in the paths of others are among the keys."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        while path:
            path, _, name = path.rpartition("/")
            if name in names[path]:
                break
            names[path].add(name)
    return {folder: sorted(below) for folder, below in names.items()}


class Replayed(Recorded):
    """What was recorded, as if it were so now: for services, which tell what is as old as that from what is new."""

    def now(self) -> float:
        return time.time()
