"""The output of the NCCL Inspector in folders and files of the user, and the table of ranks beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...models.jobs.placement import Row, read_rows
from ...probes.jobs.inspector_files import Form, form_of
from ...probes.jobs.rank_log import MARK, read_ranks
from .site_file import BadInput, read_text

_ENDINGS = (".log", ".json", ".jsonl", ".txt", ".prom")  # of files in a folder


class Found(Struct, frozen=True):
    """The files of the Inspector, and the number of other files beside them."""

    files: tuple[tuple[str, Form], ...]
    others: int


def found_in(paths: Sequence[str]) -> Found:
    """The Inspector's files in these files and folders."""
    names = [name for path in paths for name in _files(path)]
    forms = [(name, form_of(name)) for name in names]
    files = tuple((name, form) for name, form in forms if form is not None)
    return Found(files, len(names) - len(files))


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, _, names in sorted(os.walk(path)):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(_ENDINGS))


def rows_of(path: str | None) -> tuple[Row, ...]:
    """The table of ranks in this file, or what NCCL's log says of its processes. Raises BadInput."""
    if path is None:
        return ()
    text = read_text(path, "--ranks")
    if MARK in text:
        if not (rows := read_ranks(text.splitlines())):
            raise BadInput(f"--ranks {path}: the log has no line 'Init COMPLETE': run the job with NCCL_DEBUG=INFO")
        return rows
    try:
        return read_rows(text)
    except ValueError as wrong:
        raise BadInput(f"--ranks {path}: {wrong}") from None
