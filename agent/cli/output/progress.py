"""On a terminal, which sources are being asked, once it takes long enough to wonder."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ....models.facts.records import Record
from ....probes.host.host import Host
from ...pipeline.diagnose import Probes
from ...pipeline.source import Source

_PATIENCE = 1.0  # seconds without a word
_MOST = 4  # names in a line


@contextmanager
def shown(readers: Iterable[Source], probes: Probes) -> Iterator[tuple[list[Source], Probes]]:
    """The same sources; while they run, a line on standard error names those that have not answered."""
    if not sys.stderr.isatty():
        yield list(readers), probes
        return
    asked: dict[str, int | None] = {}  # and for probes, how many follow
    done = threading.Event()

    def watched(source: Source) -> Source:
        def told(host: Host) -> Iterator[Record]:
            asked[source.name] = source.left
            try:
                yield from source.read(host)
            finally:
                asked.pop(source.name, None)

        return replace(source, read=told)

    def tell() -> None:
        while not done.wait(_PATIENCE):
            sys.stderr.write(f"\r\x1b[K{_line(dict(asked))}")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield [watched(reader) for reader in readers], lambda report: map(watched, probes(report))
    finally:
        done.set()
        teller.join()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _line(asked: Mapping[str, int | None]) -> str:
    """What runs now, and what is left."""
    names = ", ".join(name.replace("_", " ") for name in list(asked)[:_MOST])
    left = next((left for left in asked.values() if left is not None), None)
    if left is None:
        return f"looking at {names} ..." if names else ""
    return f"measuring {names}, {left or 'none'} left ... (Ctrl-C shows what was found so far)"
