"""File systems that jobs read and write, from filesystems.toml."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import msgspec

from ..site.schema import Positive, Text
from . import load


class FileSystem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file system, by the type of its mount or the model of its disk, and one published rate."""

    name: Text
    types: tuple[Text, ...] = ()
    models: tuple[Text, ...] = ()  # shell patterns
    rate: Positive | None = None  # bytes per second of a single node
    source: Text


class _FileSystems(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    filesystem: tuple[FileSystem, ...]


@cache
def _all() -> tuple[FileSystem, ...]:
    return load("filesystems.toml", _FileSystems).filesystem


def filesystem_of(kind: str, model: str = "") -> FileSystem | None:
    """The row of a mount's type, or of its disk's model."""
    matches = (one for one in _all() if kind in one.types or any(fnmatchcase(model, name) for name in one.models))
    return next(matches, None)
