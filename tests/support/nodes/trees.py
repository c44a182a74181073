"""Machines of a few files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from linkgauge.probes.host.entries import Entry, Folder, Link
from linkgauge.probes.host.recorded import Recorded


def tree(files: Mapping[str, Entry], calls: Mapping[tuple[str, ...], tuple[str, ...]] | None = None) -> Recorded:
    """A machine at second 1000 with these files and their folders, and nothing else."""
    entries: dict[str, Entry] = {}
    for path, entry in files.items():
        entries[path] = entry
        while "/" in path:
            path = path.rpartition("/")[0]
            entries.setdefault(path, Folder())
    return Recorded(1000, entries, calls or {})


def write(root: Path, files: Mapping[str, Entry]) -> None:
    """Write the files and links to a disk. Refused entries are left out."""
    for path, entry in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, str):
            (root / path).write_text(f"{entry}\n")
        elif isinstance(entry, Link) and isinstance(entry.target, str):
            (root / path).symlink_to(entry.target)
