"""Serial numbers of NVIDIA GPUs, asked for by name alone: they identify a machine. Runs in a child (calls.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..models.facts import Serial
from ..models.said import Said
from .nvml_asking import Asking, Row, each_gpu, opened, seconds
from .parsers import word


def serials() -> Iterator[Said]:
    """A `Serial` for each GPU that has one; cards for desks have none."""
    until = time.monotonic() + seconds()
    ready = opened(until)
    if not isinstance(ready, tuple):
        return
    library, driver = ready
    for asking, _ in each_gpu(library, driver.fields["gpus"], _gpu, until):
        if number := asking.fields.get("number"):
            yield Serial(key=asking.key, number=number)


def _gpu(asking: Asking) -> None:
    asking.take(Row("number", ("DeviceGetSerial",), read=word))
