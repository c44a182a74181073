"""Metrics of a single report: as a file for node_exporter's textfile collector, to a Pushgateway, over OTLP."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

from ...exporters.metrics.prometheus import page, push
from ...models.report import Report
from ..inputs import resolve as inputs
from ..state.atomic_write import write_whole
from .options.push import Sinks
from .output.write import write


def send(report: Report, site: str | None, sinks: Sinks, path: str | None, as_file: bool) -> None:
    """Send the metrics where the sinks say, with the labels of the site file; `as_file`: to `path` or standard output.

    A sink that does not take them is a warning: the verdict stays what it is. Raises BadInput.
    """
    labels = inputs.site(site).labels
    if as_file:
        _textfile(page(report, labels=labels), path)
    if sinks.push:
        with _warned("--push", sinks.push):
            push(sinks.push, report, labels)
    if sinks.otlp:
        from ...exporters.metrics import otlp  # takes long to import

        with _warned("--otlp", sinks.otlp):
            otlp.send(sinks.otlp, report, labels=labels)


def _textfile(content: bytes, path: str | None) -> None:
    """Whole or not at all."""
    if path is None:
        write(content.decode(), None)
        return
    try:
        write_whole(path, content)
    except OSError as refused:
        raise inputs.BadInput(f"{path}: {refused.strerror}") from None


@contextmanager
def _warned(option: str, url: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, HTTPException) as refused:  # ValueError: what is no address, too
        print(f"Warning: {option} {url}: the metrics were not taken: {refused}", file=sys.stderr)
