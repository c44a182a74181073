"""The call `nvml_live`: NVLink traffic, clocks and power of each GPU, with a fifth of the NVML calls of nvml.py."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ...models.facts.gpu import Gpu
from ...models.facts.records import Record
from .nvml import CALLS, POWER, take_value
from .nvml_reader import NvmlReader
from .nvml_threads import each_gpu, open_driver, seconds
from .nvml_traffic import ALL_LINKS, NVLINK_DATA

_FIELDS = {"address", "clock", "memory_clock", "clock_reasons", "temperature", "power", "power_limit"}
_QUERIES = tuple(query for query in CALLS if query.field in _FIELDS)
_VALUES = tuple(value for value in POWER if value.query.field in _FIELDS)


def values() -> Iterator[Record]:
    """Yield a `Gpu` and two counters of each GPU. Nothing if the driver cannot be used (nvml.py reports that)."""
    until = time.monotonic() + seconds()
    opened = open_driver(until)
    if not isinstance(opened, tuple):
        return
    library, driver = opened
    for reader, failure in each_gpu(library, driver.fields["gpus"], _gpu, until):
        why = {"failure": failure.detail, "failure_reason": failure.reason} if failure else {}
        if reader.fields or why:
            yield Gpu(key=reader.key, **{**reader.fields, **why})
        yield from reader.observed.copy()


def _gpu(reader: NvmlReader) -> None:
    """Read one GPU. Raises NvmlError if the GPU is lost."""
    for query in _QUERIES:
        reader.take(query)
    traffic = {number: name for name, number in NVLINK_DATA.items()}
    fields = [*((number, ALL_LINKS) for number in traffic), *((value.number, 0) for value in _VALUES)]
    answers = reader.numbers(fields)
    for number, name in traffic.items():
        reader.count(reader.key, name, number, answers[number, ALL_LINKS], "bytes", 1 / 1024)
    for value in _VALUES:
        take_value(reader, value, answers[value.number, 0])
