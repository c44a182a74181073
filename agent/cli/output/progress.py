"""Show on a terminal which sources are running, if they take longer than a second."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from msgspec.structs import replace

from ....exporters.text.terminal import fitted
from ....models.facts.records import Record
from ....probes.host.host import Host
from ...pipeline.diagnose import Probes
from ...pipeline.source import Source

_PATIENCE = 1.0  # seconds before the first line and between two lines
_MOST = 4  # names in a line
_NARROWEST = 20  # columns


@contextmanager
def show_progress(readers: Iterable[Source], probes: Probes) -> Iterator[tuple[list[Source], Probes]]:
    """Wrap the sources, so that a line on standard error names those that are running."""
    if not sys.stderr.isatty():
        yield list(readers), probes
        return
    running: dict[str, int | None] = {}  # running source -> number of probes that follow it
    done = threading.Event()

    def watched(source: Source) -> Source:
        def read(host: Host) -> Iterator[Record]:
            running[source.name] = source.probes_left
            try:
                yield from source.read(host)
            finally:
                running.pop(source.name, None)

        return replace(source, read=read)

    def refresh() -> None:
        while not done.wait(_PATIENCE):
            columns = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\x1b[K{fitted(_line(dict(running)), max(columns - 1, _NARROWEST))}")
            sys.stderr.flush()

    display = threading.Thread(target=refresh, daemon=True)
    display.start()
    try:
        yield [watched(reader) for reader in readers], lambda report, undecided: map(watched, probes(report, undecided))
    finally:
        done.set()
        display.join()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _line(running: Mapping[str, int | None]) -> str:
    """One line: the running sources, and the number of probes that follow."""
    names = ", ".join(name.replace("_", " ") for name in list(running)[:_MOST])
    left = next((left for left in running.values() if left is not None), None)
    if left is None:
        return f"reading {names} ..." if names else ""
    return f"measuring {names}, {left or 'none'} left ... (Ctrl-C ends it and shows the results so far)"
