"""Writing a tree of sysfs and procfs in memory, folders and relative links as the kernel makes them."""

from __future__ import annotations

import posixpath

from ..host.entries import Entry, Folder, Link


class TreeWriter:
    """Entries of a machine in the making; every folder above one is there too."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {"": Folder()}

    def put(self, path: str, entry: Entry | int) -> None:
        """A file (a number is its text; white space at its end is dropped), a link or a folder."""
        self.entries[path] = str(entry).rstrip() if isinstance(entry, int | str) else entry
        above = posixpath.dirname(path)
        while above not in self.entries:
            self.entries[above] = Folder()
            above = posixpath.dirname(above)

    def files(self, folder: str, **texts: Entry | int) -> None:
        """Several files in one folder."""
        for name, text in texts.items():
            self.put(f"{folder}/{name}", text)

    def link(self, path: str, target: str) -> None:
        """A link to `target`, a path from the root, relative as in sysfs."""
        self.put(path, Link(posixpath.relpath(target, posixpath.dirname(path))))
