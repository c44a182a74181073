"""The options that send metrics; a command takes them as `sinks`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, NamedTuple

import click


class Sinks(NamedTuple):
    """The addresses that metrics are sent to."""

    push: str | None = None  # a Pushgateway
    otlp: str | None = None  # full URL: http://collector:4318/v1/metrics


_OPTIONS = (
    click.option("--push", metavar="URL", help="Send the metrics to a Pushgateway: http://gateway:9091"),
    click.option("--otlp", metavar="URL", help="Send the metrics over OTLP: http://collector:4318/v1/metrics"),
)


def sending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which takes them as `sinks`. Addresses are checked before any measurement."""

    @wraps(command)
    def gathered(*args: Any, push: str | None, otlp: str | None, **others: Any) -> Any:
        for name, url in (("--push", push), ("--otlp", otlp)):
            if url is not None and not url.startswith(("http://", "https://")):
                raise click.UsageError(f"{name} {url}: the address must begin with http:// or https://")
        if otlp is not None and find_spec("opentelemetry") is None:
            raise click.UsageError("--otlp needs OpenTelemetry: pip install 'linkgauge[otlp]'")
        return command(*args, sinks=Sinks(push, otlp), **others)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered
