"""The call `nvml`: the current state of each NVIDIA GPU. It runs in a child process.

nvml_topology.py reads the attributes that are constant until a reset. A GPU with 18 NVLinks takes 45 calls
(docs/operate/overhead.md). PCIe throughput is never requested, because the driver samples each direction for 20 ms.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from ctypes import Structure, c_uint32, c_ulonglong, sizeof
from typing import Any

from msgspec import Struct

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, Observation, Record
from ...models.facts.recovery import recovery_action
from ..parsing.nvml_enums import (
    COMPUTE_MODES,
    GRAPHICS,
    MEMORY,
    SM,
    clock_reasons,
    hertz,
    meaning,
    pci_address,
    pcie_speed,
)
from ..parsing.parsers import word
from .nvml_fabric import fabric
from .nvml_library import ABSENT, INVALID_ARGUMENT, NOT_FOUND, Field, NvmlError
from .nvml_links import OF_ALL_LINKS, links
from .nvml_reader import FieldQuery, NvmlReader, value_of
from .nvml_threads import each_gpu, open_driver, seconds
from .nvml_traffic import ALL_LINKS, NVLINK_DATA


def _watts(milliwatts: int) -> float:
    return milliwatts / 1e3


CALLS = (
    FieldQuery("address", ("DeviceGetPciInfo",), read=lambda info: pci_address(info.busId)),
    FieldQuery("name", ("DeviceGetName",), read=word),
    FieldQuery("uuid", ("DeviceGetUUID",), read=word),
    FieldQuery("pcie_speed", ("DeviceGetCurrPcieLinkGeneration",), read=pcie_speed),
    FieldQuery("pcie_width", ("DeviceGetCurrPcieLinkWidth",), read=lambda lanes: lanes or None),
    FieldQuery("pcie_max_speed", ("DeviceGetMaxPcieLinkGeneration",), read=pcie_speed),
    FieldQuery("pcie_max_width", ("DeviceGetMaxPcieLinkWidth",), read=lambda lanes: lanes or None),
    FieldQuery("performance_state", ("DeviceGetPerformanceState",), read=lambda state: state if state < 16 else None),
    FieldQuery("clock", ("DeviceGetClockInfo",), (SM,), hertz),
    FieldQuery("memory_clock", ("DeviceGetClockInfo",), (MEMORY,), hertz),
    FieldQuery("application_clock", ("DeviceGetApplicationsClock",), (GRAPHICS,), hertz),
    FieldQuery(
        "clock_reasons",
        ("DeviceGetCurrentClocksEventReasons", "DeviceGetCurrentClocksThrottleReasons"),
        read=clock_reasons,
    ),
    FieldQuery("temperature", ("DeviceGetTemperatureV", "DeviceGetTemperature"), (0,), float),
    FieldQuery("persistence", ("DeviceGetPersistenceMode",), read=bool),
    FieldQuery("compute_mode", ("DeviceGetComputeMode",), read=lambda mode: meaning(COMPUTE_MODES, mode)),
)


class _Value(Struct, frozen=True):
    """A field of Gpu with an NVML field number (nvml.h, "Field Value Enums"), and fallback calls for older drivers."""

    number: int
    query: FieldQuery


def _value(field: str, number: int, read: Any, calls: tuple[str, ...] = (), arguments: tuple[int, ...] = ()) -> _Value:
    return _Value(number, FieldQuery(field, calls, arguments, read))


_MEMORY = (
    _value("ecc", 1, bool, ("DeviceGetCurrentEccMode",)),
    _value("ecc_pending", 2, bool, ("DeviceGetPendingEccMode",)),
    # Arguments of the calls: error type (0 corrected, 1 uncorrected) and period (0 since driver load, 1 lifetime).
    _value("ecc_corrected", 3, int, ("DeviceGetTotalEccErrors",), (0, 0)),
    _value("ecc_uncorrected", 4, int, ("DeviceGetTotalEccErrors",), (1, 0)),
    _value("ecc_corrected_lifetime", 5, int, ("DeviceGetTotalEccErrors",), (0, 1)),
    _value("ecc_uncorrected_lifetime", 6, int, ("DeviceGetTotalEccErrors",), (1, 1)),
)
_REMAP_PENDING = 144
_ROWS = (
    _value("remapped_correctable", 142, int),
    _value("remapped_uncorrectable", 143, int),
    _value("remap_pending", _REMAP_PENDING, bool),
    _value("remap_failed", 145, bool),
)
# nvmlRowRemapperHistogramValues_t: memory banks by the spare rows that they have left. Only remapped rows use them up.
_FULL_BANKS = FieldQuery("full_banks", ("DeviceGetRowRemapperHistogram",), read=lambda banks: banks.none)
POWER = (
    _value("power", 186, _watts, ("DeviceGetPowerUsage",)),
    _value("power_limit_default", 189, _watts, ("DeviceGetPowerManagementDefaultLimit",)),
    _value("power_limit", 190, _watts, ("DeviceGetEnforcedPowerLimit",)),
)
_RECOVERY = 230
_MOST_INSTANCES = 16  # products have at most 7
_COUNTED = ("ecc_corrected", "ecc_uncorrected")  # also yielded as observations
_PCIE_REPLAY = 94
# Nanoseconds of clock throttling, by reason. nvml.h maps the thermal policy, field 75 of all releases, to the software
# thermal slowdown. The other reasons have fields since release 575; release 580.82 gave them new numbers, because
# release 570 had used the first ones for power smoothing (NVML change log, 575 to 580; nvidia-ml-py).
_POLICIES: Mapping[str, int] = {"clocks_sw_power": 74, "clocks_sw_thermal": 75}
_REASONS_575: Mapping[str, int] = {"clocks_hw_thermal": 252, "clocks_hw_power_brake": 253}
_REASONS_580: Mapping[str, int] = {"clocks_hw_thermal": 270, "clocks_hw_power_brake": 271}
_REASONS_SINCE, _RENUMBERED = (575, 0), (580, 82)


def throttle_fields(version: str) -> Mapping[str, int]:
    """The field of each throttle time, in a driver of this version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    release = (int(found[1]), int(found[2])) if found else _RENUMBERED
    reasons = {} if release < _REASONS_SINCE else _REASONS_575 if release < _RENUMBERED else _REASONS_580
    return {**_POLICIES, **reasons}


# volatileUncParity and volatileUncSecDed: since the driver was loaded
_SRAM_UNCORRECTED = (3, 4)


class _SramErrors(Structure):
    """nvmlEccSramErrorStatus_t, version 1: eleven counts, and whether they exceed the threshold."""

    _fields_ = [("version", c_uint32), ("counts", c_ulonglong * 11), ("too_many", c_uint32)]


def state() -> Iterator[Record]:
    """Yield the `Driver`, then `Gpu`, `GpuLink`s and counters of each GPU, then the number of NVML calls."""
    deadline = time.monotonic() + seconds()
    opened = open_driver(deadline)
    if not isinstance(opened, tuple):
        yield opened
        return
    library, driver = opened
    yield Driver(key=driver.key, **driver.fields)
    yield from driver.lost
    for reader, failure in each_gpu(library, driver.fields["gpus"], _gpu, deadline):
        if reader.fields or failure:
            yield Gpu(
                key=reader.key,
                failure=failure.detail if failure else None,
                failure_reason=failure.reason if failure else None,
                **dict(reader.fields),
            )
        yield from reader.rest()
    yield Observation(
        about="nvidia",
        quantity="driver_calls",
        unit="count",
        value=float(library.calls),
        at=time.time(),
        evidence=Evidence("NVML", f"{library.calls} calls"),
    )


def _gpu(reader: NvmlReader) -> None:
    """Read one GPU. Raises NvmlError if the GPU is lost."""
    for query in CALLS:
        reader.take(query)
    library, handle, fields = reader.library, reader.handle, reader.fields
    reader.attempt("memory", lambda: _memory(reader))
    reader.attempt("mig", lambda: _mig(reader))
    count = reader.attempt("processes", lambda: library.processes(handle))
    if count is not None:
        fields["processes"] = count
        reader.observe(reader.key, "processes", "count", float(count), "nvmlDeviceGetComputeRunningProcesses")
    reader.attempt("fabric_state", lambda: fields.update(fabric(library, handle)))
    reader.attempt("sram_threshold", lambda: _sram(reader))
    links(reader, _values(reader))


def _memory(reader: NvmlReader) -> None:
    answers = reader.library.memory(reader.handle)
    reader.fields.update(memory=answers.total, memory_used=answers.used)


def _mig(reader: NvmlReader) -> None:
    """Read whether MIG is on, and the number of MIG instances."""
    library, handle = reader.library, reader.handle
    on = library.call("DeviceGetMigMode", handle)[0] == 1
    reader.fields.update(mig=on, mig_instances=None if on else 0)
    if on:
        places = range(min(library.call("DeviceGetMaxMigDeviceCount", handle), _MOST_INSTANCES))
        reader.fields["mig_instances"] = sum(_is_instance(reader, place) for place in places)


def _is_instance(reader: NvmlReader, place: int) -> bool:
    try:
        reader.library.call("DeviceGetMigDeviceHandleByIndex", reader.handle, place)
    except NvmlError as refusal:
        if refusal.code not in (NOT_FOUND, INVALID_ARGUMENT):
            raise
        return False
    return True


def _sram(reader: NvmlReader) -> None:
    errors = _SramErrors(version=1 << 24 | sizeof(_SramErrors))
    reader.library.fill("DeviceGetSramEccErrorStatus", reader.handle, errors)
    uncorrected = sum(errors.counts[place] for place in _SRAM_UNCORRECTED)
    reader.fields.update(sram_threshold=bool(errors.too_many), sram_uncorrected=uncorrected)


def _remapped(reader: NvmlReader) -> None:
    """Read the four fields of remapped rows from a driver that has no field numbers for them."""
    correctable, uncorrectable, pending, failed = reader.library.call("DeviceGetRemappedRows", reader.handle)
    reader.fields.update(remapped_correctable=correctable, remapped_uncorrectable=uncorrectable)
    reader.fields.update(remap_pending=bool(pending), remap_failed=bool(failed))


def _values(reader: NvmlReader) -> Mapping[Field, float | NvmlError]:
    """Read the numbered fields, one family in each request: fields of Gpu, its counters, and what links() needs.

    NVML can refuse a whole request because of one field, so a family does not hide the others.
    """
    memory = reader.numbers([*((value.number, 0) for value in (*_MEMORY, *_ROWS)), (_RECOVERY, 0)])
    for value in _MEMORY:
        take_value(reader, value, memory[value.number, 0])
        if value.query.field in _COUNTED and (count := reader.fields.get(value.query.field)) is not None:
            reader.observe(reader.key, value.query.field, "count", float(count), f"NVML field {value.number}")
    _rows(reader, memory)
    reader.attempt("recovery", lambda: _recovery(reader, memory[_RECOVERY, 0]))
    pcie = reader.numbers([(_PCIE_REPLAY, 0)])
    reader.count(reader.key, "pcie_replay", _PCIE_REPLAY, pcie[_PCIE_REPLAY, 0])
    _power(reader)
    links = reader.numbers(
        [*((number, 0) for number in OF_ALL_LINKS), *((number, ALL_LINKS) for number in NVLINK_DATA.values())]
    )
    for name, number in NVLINK_DATA.items():
        reader.count(reader.key, name, number, links[number, ALL_LINKS], "bytes", 1 / 1024)
    return links


def _power(reader: NvmlReader) -> None:
    """Read power and the times of throttling."""
    throttled = throttle_fields(reader.library.version)
    answers = reader.numbers((number, 0) for number in (*(value.number for value in POWER), *throttled.values()))
    for value in POWER:
        take_value(reader, value, answers[value.number, 0])
    for name, number in throttled.items():
        reader.count(reader.key, name, number, answers[number, 0], "seconds", 1e9)


def _rows(reader: NvmlReader, answers: Mapping[Field, float | NvmlError]) -> None:
    """Read remapped rows. With MIG instances the driver hides them (nvml.h, nvmlDeviceGetRemappedRows)."""
    pending = answers[_REMAP_PENDING, 0]
    if isinstance(pending, NvmlError) and pending.code in ABSENT:
        reader.attempt("remap_pending", lambda: _remapped(reader))
        if "remap_pending" not in reader.fields:  # GPUs before Ampere retire pages instead of rows
            reader.take(FieldQuery("remap_pending", ("DeviceGetRetiredPagesPendingStatus",), read=bool))
        if "remap_pending" not in reader.fields and reader.fields.get("mig"):
            reader.miss("remap_pending", Reason.NOT_SUPPORTED, "the driver hides remapped rows while MIG is on")
    for value in _ROWS:
        if value.query.field not in reader.fields:
            take_value(reader, value, answers[value.number, 0])
    if reader.fields.get("remapped_correctable") or reader.fields.get("remapped_uncorrectable"):
        reader.take(_FULL_BANKS)


def _recovery(reader: NvmlReader, answer: float | NvmlError) -> None:
    """Read the recovery action. Raises ValueError for a number that this release does not have."""
    number = int(value_of(answer))
    action = recovery_action(number, reader.library.release)
    if action is None:
        raise ValueError(f"{number} is no recovery action")
    reader.fields["recovery"] = action


def take_value(reader: NvmlReader, value: _Value, answer: float | NvmlError) -> None:
    """Store a field by its number. If the driver refuses the number, use the call."""
    query = value.query
    if isinstance(answer, NvmlError) and query.calls:
        reader.take(query)
    else:
        reader.attempt(query.field, lambda: reader.fields.update({query.field: query.read(value_of(answer))}))
