"""Writing a sysfs and procfs tree in memory, with folders and relative links like the kernel's."""

from __future__ import annotations

import posixpath

from ..host.entries import Entry, Folder, Link


class TreeWriter:
    """The entries of a machine, with all folders above them."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {"": Folder()}

    def put(self, path: str, entry: Entry | int) -> None:
        """Add a file, a link or a folder. Numbers become text, and trailing white space is removed."""
        self.entries[path] = str(entry).rstrip() if isinstance(entry, int | str) else entry
        above = posixpath.dirname(path)
        while above not in self.entries:
            self.entries[above] = Folder()
            above = posixpath.dirname(above)

    def files(self, folder: str, **texts: Entry | int) -> None:
        """Add several files to a folder."""
        for name, text in texts.items():
            self.put(f"{folder}/{name}", text)

    def link(self, path: str, target: str) -> None:
        """Add a link to `target`, a path from the root. The stored link is relative, like in sysfs."""
        self.put(path, Link(posixpath.relpath(target, posixpath.dirname(path))))
