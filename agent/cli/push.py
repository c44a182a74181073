"""Export the metrics of one report: to a file for node_exporter, to a Pushgateway, or over OTLP."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

from ...exporters.metrics.prometheus import page, push
from ...models.report import Report
from ..inputs import site_file
from ..state.atomic_write import write_atomically
from .options.push import Sinks
from .output.write import write


def send(report: Report, site: str | None, sinks: Sinks, path: str | None, as_file: bool) -> None:
    """Send the metrics to the sinks, with the labels of the site file. `as_file`: also to `path` or standard output.

    A sink that fails is a warning and does not change the exit code. Raises BadInput.
    """
    labels = site_file.site(site).labels
    if as_file:
        _textfile(page(report, labels=labels), path)
    if sinks.push:
        with _warned("--push", sinks.push):
            push(sinks.push, report, labels)
    if sinks.otlp:
        from ...exporters.metrics import otlp  # slow to import

        with _warned("--otlp", sinks.otlp):
            otlp.send(sinks.otlp, report, labels=labels)


def _textfile(content: bytes, path: str | None) -> None:
    """Write the file atomically, or print to standard output."""
    if path is None:
        write(content.decode(), None)
        return
    try:
        write_atomically(path, content)
    except OSError as refused:
        raise site_file.BadInput(f"{path}: {refused.strerror}") from None


@contextmanager
def _warned(option: str, url: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, HTTPException) as refused:  # ValueError: also an invalid address
        print(f"Warning: {option} {url}: the metrics were not accepted: {refused}", file=sys.stderr)
