"""Files of the NCCL Inspector: recognise them, and read them as a stream."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Literal, TypeAlias

from ...models.jobs.log import JobLog
from .inspector_lines import LinesReader
from .inspector_metrics import read_metrics

Form: TypeAlias = Literal["lines", "metrics"]
_HEAD = 1 << 16  # bytes
_CHUNK = 1 << 20
_LONGEST = 4 << 20  # bytes of a line: a verbose one has the times of all channels
_LINES = (b'"coll_perf"', b'"p2p_perf"', b'"dump_stats"', b'"inspector_output_format_version"')
_METRICS = (b"nccl_bus_bandwidth_gbs{", b"nccl_p2p_bus_bandwidth_gbs{", b"nccl_collective_exec_time_microseconds{")


def form_of(path: str) -> Form | None:
    """The format of the file; None: it is no output of the Inspector, or it cannot be read."""
    try:
        status = os.stat(path)
        # A file of the kernel has no size, and a read of /proc/kmsg waits and removes what it reads.
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return None
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if any(line.lstrip().startswith(b"{") and any(key in line for key in _LINES) for line in head.split(b"\n")):
        return "lines"
    return "metrics" if any(key in head for key in _METRICS) else None


def read_files(paths: Sequence[tuple[str, Form]]) -> JobLog:
    """Read all files into one log. The log counts the files that cannot be read, or not to their end."""
    log = JobLog()
    for path, form in paths:
        try:
            with open(path, "rb") as file:
                _read(file, os.path.basename(path), form, log)
            log.files += 1
        except OSError as refused:
            log.unread[refused.strerror or str(refused)] += 1
    return log


def _read(file: BinaryIO, name: str, form: Form, log: JobLog) -> None:
    if form == "metrics":
        for lines in _chunks(file, log):
            read_metrics(name, lines, log)
        return
    reader = LinesReader(log)
    for lines in _chunks(file, log):
        reader.read(lines)
    reader.end()


def _chunks(file: BinaryIO, log: JobLog) -> Iterator[list[bytes]]:
    """Whole lines, a megabyte at a time. A last line without an end is not whole: its process is still writing."""
    rest = b""
    while chunk := file.read(_CHUNK):
        log.bytes += len(chunk)
        *lines, rest = (rest + chunk).split(b"\n")
        yield lines
        if len(rest) > _LONGEST:
            log.problems["damaged lines"] += 1
            rest = _after_line(file, log)
    *lines, rest = rest.split(b"\n")
    yield lines
    if rest.strip():
        log.problems["last lines that were not complete"] += 1


def _after_line(file: BinaryIO, log: JobLog) -> bytes:
    """Skip to the end of a line. Returns what was read after it."""
    while chunk := file.read(_CHUNK):
        log.bytes += len(chunk)
        _, newline, rest = chunk.partition(b"\n")
        if newline:
            return rest
    return b""
