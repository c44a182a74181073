"""The JSON files of the state folder: `bounded_read` reads them, since anybody may have put anything there."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ...probes.calls.bounded_read import bounded_read

T = TypeVar("T")
CLOCK_STEP = 3600.0  # seconds by which somebody may have set the clock back since a file was written
_MOST = 4 << 20  # bytes


def read_small(path: str, kind: type[T]) -> T:
    """What the file holds. Raises OSError; ValueError, with a sentence, where the content cannot be used."""
    try:
        return msgspec.json.decode(bounded_read(path, _MOST), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"{path}: damaged, or of another version ({wrong})") from None
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from None
