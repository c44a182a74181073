"""Serial numbers of NVIDIA GPUs, asked for by name alone: they identify a machine. Runs in a child (calls.py)."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.machine import Serial
from ...models.facts.records import Record
from ..parsing.parsers import word
from .nvml_threads import Asking, Row, answering


def serials() -> Iterator[Record]:
    """A `Serial` for each GPU that has one; cards for desks have none."""
    for asking in answering(_gpu):
        if number := asking.fields.get("number"):
            yield Serial(key=asking.key, number=number)


def _gpu(asking: Asking) -> None:
    asking.take(Row("number", ("DeviceGetSerial",), read=word))
