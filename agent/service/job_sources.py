"""The source of the texts that jobs write, if the configuration names their folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...models.facts.records import Record
from ...probes.host.host import Host
from ...probes.jobs.job_texts import JobTexts
from ..pipeline.source import Source
from .config import Config


class JobSources:
    """Keeps the reader of the folder between cycles; a reload of the configuration can name another folder."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._read: Callable[[Host], Iterator[Record]] | None = None

    def sources(self, config: Config) -> list[Source]:
        """One source, or none."""
        folder = config.jobs.inspector
        if folder != self._folder:
            self._folder, self._read = folder, JobTexts(folder) if folder else _nothing
        return [Source("jobs", self._read)] if self._read else []


def _nothing(host: Host) -> Iterator[Record]:
    """A source without records, so that the service drops the records of the folder before."""
    yield from ()
