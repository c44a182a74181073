"""Said as lines of JSON, `["Pci", {...}]`: how a child answers its parent and how a capture keeps what was called."""

from __future__ import annotations

import msgspec

from .kinds import RECORDS, kind_name
from .said import Said


def encode(said: Said) -> str:
    """One line, without its end; fields that were not said are left out."""
    fields = {
        name: value
        for name, value in msgspec.to_builtins(said).items()
        if value is not None and (name, value) != ("cites", {})
    }
    return msgspec.json.encode([kind_name(type(said)), fields]).decode()


def decode(line: str | bytes) -> Said:
    """The Said of one line. ValueError says what is wrong with it."""
    try:
        kind, fields = msgspec.json.decode(line, type=tuple[str, dict[str, object]])
        said: Said = msgspec.convert(fields, type=RECORDS[kind])
    except KeyError as unknown:
        raise ValueError(f"no kind of fact is called {unknown}") from None
    except msgspec.DecodeError as broken:  # ValidationError is one of them
        raise ValueError(str(broken)) from None
    return said
