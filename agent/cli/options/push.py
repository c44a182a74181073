"""The options by which a command is told where to send its metrics; they reach it as `sinks`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, NamedTuple

import click


class Sinks(NamedTuple):
    """Addresses that metrics are sent to."""

    push: str | None = None  # a Pushgateway
    otlp: str | None = None  # whole: http://collector:4318/v1/metrics


_OPTIONS = (
    click.option("--push", metavar="URL", help="Send the metrics to a Pushgateway: http://gateway:9091"),
    click.option("--otlp", metavar="URL", help="Send the metrics over OTLP: http://collector:4318/v1/metrics"),
)


def sending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options; it takes `sinks`. What cannot be an address is told before anything is measured."""

    @wraps(command)
    def gathered(*args: Any, push: str | None, otlp: str | None, **others: Any) -> Any:
        for name, url in (("--push", push), ("--otlp", otlp)):
            if url is not None and not url.startswith(("http://", "https://")):
                raise click.UsageError(f"{name} {url}: an address begins with http:// or https://")
        if otlp is not None and find_spec("opentelemetry") is None:
            raise click.UsageError("--otlp needs OpenTelemetry: pip install 'linkgauge[otlp]'")
        return command(*args, sinks=Sinks(push, otlp), **others)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered
