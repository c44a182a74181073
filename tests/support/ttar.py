"""Unpacks .ttar, the plain-text archives of prometheus/procfs."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Write folders, files and links below `folder`, without their modes.

    The archive has the number of lines of each file. A binary file can have more lines than that; the function skips
    lines without a keyword.
    """
    lines = iter(archive.read_bytes().split(b"\n"))
    path = folder
    for line in lines:
        keyword, _, value = line.partition(b": ")
        if keyword == b"Directory":
            (folder / os.fsdecode(value)).mkdir(parents=True, exist_ok=True)
        elif keyword == b"Path":
            path = folder / os.fsdecode(value)
            path.parent.mkdir(parents=True, exist_ok=True)
        elif keyword == b"SymlinkTo":
            path.symlink_to(os.fsdecode(value))
        elif keyword == b"Lines":
            path.write_bytes(_content(b"".join(line + b"\n" for line in islice(lines, int(value)))))


def _content(text: bytes) -> bytes:
    """NULLBYTE is a zero byte, EOF an end without a newline. After a backslash both are literal."""
    text = re.sub(rb"(?<!\\)NULLBYTE", b"\0", text)
    text = re.sub(rb"(?<!\\)EOF\n", b"", text)
    return re.sub(rb"\\(NULLBYTE|EOF)", rb"\1", text)
