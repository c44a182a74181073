"""The output of the NCCL Inspector in folders and files of the user, and the table of ranks beside it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...models.jobs.placement import Row, read_rows
from ...probes.jobs.inspector_files import Form, form_of
from ...probes.jobs.rank_log import MARK, read_ranks
from .site_file import BadInput, read_text

_ENDINGS = (".log", ".json", ".jsonl", ".txt", ".prom")  # of files in a folder


class Found(Struct, frozen=True):
    """The files of the Inspector, the number of other files beside them, and why files and folders were not read."""

    files: tuple[tuple[str, Form], ...]
    others: int
    unread: tuple[str, ...] = ()  # one reason for each


def found_in(paths: Sequence[str]) -> Found:
    """The Inspector's files in these files and folders."""
    refused: list[OSError] = []
    names = [name for path in paths for name in _files(path, refused)]
    forms = [(name, form_of(name)) for name in names]
    files = tuple((name, form) for name, form in forms if form is not None)
    closed = sum(form is None and os.path.isfile(name) and not os.access(name, os.R_OK) for name, form in forms)
    unread = (*(one.strerror or str(one) for one in refused), *[os.strerror(errno.EACCES)] * closed)
    return Found(files, len(names) - len(files) - closed, unread)


def _files(path: str, refused: list[OSError]) -> Iterator[str]:
    """The files at a path; `refused` gets the errors of folders that cannot be listed."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, _, names in sorted(os.walk(path, onerror=refused.append)):
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
