"""Read the JSON files of the state folder with `bounded_read`, since other users may have put any file there."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ...probes.calls.bounded_read import bounded_read

T = TypeVar("T")
CLOCK_STEP = 3600.0  # seconds; tolerance for a clock that was set back after a file was written
_MOST = 4 << 20  # bytes


def read_state_file(path: str, kind: type[T]) -> T:
    """Decode the file. Raises OSError, or ValueError with a message if the content cannot be used."""
    try:
        return msgspec.json.decode(bounded_read(path, _MOST), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"{path}: damaged, or of another version ({wrong})") from None
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from None
