"""Sizes of messages on the command line."""

from __future__ import annotations

import re

from ...inputs.site_file import BadInput

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b)?|b)?", re.IGNORECASE)


def read_size(text: str) -> int:
    """ "64MiB", "64M" and "67108864" are equal; "64MB" is 64 million. Raises BadInput."""
    read = _SIZE.fullmatch(text.strip())
    if read is None:
        raise BadInput(f"--size {text}: not a size: write 64MiB, 1G or a number of bytes")
    number, unit, suffix = read.groups()
    base = 1000 if suffix and suffix.lower() == "b" else 1024
    size = int(float(number) * base ** (" kmgt".index(unit.lower()) if unit else 0))
    if not 0 < size < 1 << 50:
        raise BadInput(f"--size {text}: write a size from 1 byte to 1 PiB")
    return size
