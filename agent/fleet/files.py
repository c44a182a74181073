"""The reports of a fleet: JSON files and Parquet files of rows, in folders or named by patterns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic

from msgspec import Struct

from ..inputs.site_file import BadInput

_REPORT, _ROWS = ".json", ".parquet"


class Found(Struct, frozen=True):
    """The files of each kind, in the order of their names."""

    reports: tuple[str, ...]
    rows: tuple[str, ...]


def find(paths: Iterable[str]) -> Found:
    """The files at these paths. Raises BadInput if a path does not exist, or if there is no file."""
    names = sorted({name for path in paths for name in _files(path)})
    found = Found(
        tuple(one for one in names if not one.endswith(_ROWS)), tuple(one for one in names if one.endswith(_ROWS))
    )
    if not names:
        raise BadInput(f"no file *{_REPORT} or *{_ROWS} there: write reports with linkgauge diagnose --format json")
    return found


def _files(path: str) -> Iterator[str]:
    """The files at a path: those of a folder and its folders, those of a pattern, or the file itself."""
    if os.path.isdir(path):
        for folder, _, names in os.walk(path, onerror=_refused):
            yield from (os.path.join(folder, name) for name in names if name.endswith((_REPORT, _ROWS)))
    elif os.path.exists(path):
        yield path
    elif has_magic(path):
        yield from (one for name in glob(path, recursive=True) for one in _files(name))
    else:
        raise BadInput(f"{path}: no such file or folder")


def _refused(error: OSError) -> None:
    raise BadInput(f"{error.filename}: {error.strerror}")
