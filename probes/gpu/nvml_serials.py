"""The call `nvml_serials`: serial numbers of NVIDIA GPUs. It runs in a child process.

Only a request for a ticket reads them, because they identify a machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.machine import Serial
from ...models.facts.records import Record
from ..parsing.parsers import word
from .nvml_reader import FieldQuery, NvmlReader
from .nvml_threads import usable_gpus


def serials() -> Iterator[Record]:
    """Yield a `Serial` for each GPU that has one. Desktop cards have none."""
    for reader in usable_gpus(_gpu):
        if number := reader.fields.get("number"):
            yield Serial(key=reader.key, number=number)


def _gpu(reader: NvmlReader) -> None:
    reader.take(FieldQuery("number", ("DeviceGetSerial",), read=word))
