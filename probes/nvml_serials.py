"""Serial numbers of NVIDIA GPUs, asked for by name alone: they identify a machine. Runs in a child (calls.py)."""

from __future__ import annotations

from collections.abc import Iterator

from ..models.facts import Serial
from ..models.said import Said
from .nvml_asking import Asking, Row, answering
from .parsers import word


def serials() -> Iterator[Said]:
    """A `Serial` for each GPU that has one; cards for desks have none."""
    for asking in answering(_gpu):
        if number := asking.fields.get("number"):
            yield Serial(key=asking.key, number=number)


def _gpu(asking: Asking) -> None:
    asking.take(Row("number", ("DeviceGetSerial",), read=word))
