"""What NVIDIA's driver says of each GPU now. Runs in a child (calls.py); what lasts until a reset: nvml_wiring.py.

43 calls a GPU with 18 NVLinks (docs/operate/overhead.md). PCIe throughput is never asked: the driver samples it for
20 milliseconds, each direction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from ctypes import Structure, c_uint32, c_ulonglong, sizeof
from dataclasses import dataclass
from typing import Any

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.records import Evidence, Observation, Record
from ..parsing.nvml_enums import (
    COMPUTE_MODES,
    GRAPHICS,
    MEMORY,
    RECOVERY,
    SM,
    clock_reasons,
    hertz,
    meaning,
    pci_address,
    pcie_speed,
)
from ..parsing.parsers import word
from .nvml_fabric import fabric
from .nvml_library import ABSENT, INVALID_ARGUMENT, NOT_FOUND, Field, Refused
from .nvml_links import OF_ALL_LINKS, links
from .nvml_threads import Asking, Row, answered, each_gpu, opened, seconds
from .nvml_traffic import ALL_LINKS, NVLINK_DATA


def _watts(milliwatts: int) -> float:
    return milliwatts / 1e3


_CALLS = (
    Row("address", ("DeviceGetPciInfo",), read=lambda info: pci_address(info.busId)),
    Row("name", ("DeviceGetName",), read=word),
    Row("uuid", ("DeviceGetUUID",), read=word),
    Row("pcie_speed", ("DeviceGetCurrPcieLinkGeneration",), read=pcie_speed),
    Row("pcie_width", ("DeviceGetCurrPcieLinkWidth",), read=lambda lanes: lanes or None),
    Row("pcie_max_speed", ("DeviceGetMaxPcieLinkGeneration",), read=pcie_speed),
    Row("pcie_max_width", ("DeviceGetMaxPcieLinkWidth",), read=lambda lanes: lanes or None),
    Row("performance_state", ("DeviceGetPerformanceState",), read=lambda state: state if state < 16 else None),
    Row("clock", ("DeviceGetClockInfo",), (SM,), hertz),
    Row("memory_clock", ("DeviceGetClockInfo",), (MEMORY,), hertz),
    Row("application_clock", ("DeviceGetApplicationsClock",), (GRAPHICS,), hertz),
    Row(
        "clock_reasons",
        ("DeviceGetCurrentClocksEventReasons", "DeviceGetCurrentClocksThrottleReasons"),
        read=clock_reasons,
    ),
    Row("temperature", ("DeviceGetTemperatureV", "DeviceGetTemperature"), (0,), float),
    Row("persistence", ("DeviceGetPersistenceMode",), read=bool),
    Row("compute_mode", ("DeviceGetComputeMode",), read=lambda mode: meaning(COMPUTE_MODES, mode)),
)

_REMAP_PENDING = 144


@dataclass(frozen=True, slots=True)
class _Value:
    """A field of Gpu that has a number of its own (nvml.h, "Field Value Enums"), and calls for drivers without it."""

    number: int
    row: Row


def _value(field: str, number: int, read: Any, calls: tuple[str, ...] = (), takes: tuple[int, ...] = ()) -> _Value:
    return _Value(number, Row(field, calls, takes, read))


_VALUES = (
    _value("ecc", 1, bool, ("DeviceGetCurrentEccMode",)),
    _value("ecc_pending", 2, bool, ("DeviceGetPendingEccMode",)),
    # The calls take the kind of error, corrected or not, and since when: the driver was loaded, or ever.
    _value("ecc_corrected", 3, int, ("DeviceGetTotalEccErrors",), (0, 0)),
    _value("ecc_uncorrected", 4, int, ("DeviceGetTotalEccErrors",), (1, 0)),
    _value("ecc_corrected_lifetime", 5, int, ("DeviceGetTotalEccErrors",), (0, 1)),
    _value("ecc_uncorrected_lifetime", 6, int, ("DeviceGetTotalEccErrors",), (1, 1)),
    _value("remapped_correctable", 142, int),
    _value("remapped_uncorrectable", 143, int),
    _value("remap_pending", _REMAP_PENDING, bool),
    _value("remap_failed", 145, bool),
    _value("power", 186, _watts, ("DeviceGetPowerUsage",)),
    _value("power_limit_default", 189, _watts, ("DeviceGetPowerManagementDefaultLimit",)),
    _value("power_limit", 190, _watts, ("DeviceGetEnforcedPowerLimit",)),
    _value("recovery", 230, lambda action: meaning(RECOVERY, action)),
)
_MOST_INSTANCES = 16  # 7 on all GPUs so far
_COUNTED = ("ecc_corrected", "ecc_uncorrected")  # observations too
_PCIE_REPLAY = 94
# Nanoseconds that something held the clocks down.
_THROTTLED: Mapping[str, int] = {
    "clocks_sw_power": 74,
    "clocks_sw_thermal": 269,
    "clocks_hw_thermal": 270,
    "clocks_hw_power_brake": 271,
}


class _SramErrors(Structure):
    """nvmlEccSramErrorStatus_t, version 1: eleven counts, and whether they are too many."""

    _fields_ = [("version", c_uint32), ("counts", c_ulonglong * 11), ("too_many", c_uint32)]


def state() -> Iterator[Record]:
    """`Driver`, then of each GPU `Gpu`, its `GpuLink`s and its counters; last, how many calls it took."""
    until = time.monotonic() + seconds()
    ready = opened(until)
    if not isinstance(ready, tuple):
        yield ready
        return
    library, driver = ready
    yield Driver(key=driver.key, **driver.fields)
    yield from driver.lost
    for asking, failure in each_gpu(library, driver.fields["gpus"], _gpu, until):
        if asking.fields or failure:
            yield Gpu(
                key=asking.key,
                failure=failure.detail if failure else None,
                failure_reason=failure.reason if failure else None,
                **dict(asking.fields),
            )
        yield from asking.rest()
    yield Observation(
        about="nvidia",
        quantity="driver_calls",
        unit="count",
        value=float(library.calls),
        at=time.time(),
        evidence=Evidence("NVML", f"{library.calls} calls"),
    )


def _gpu(asking: Asking) -> None:
    """Everything of one GPU. Raises Refused where it is gone."""
    for row in _CALLS:
        asking.take(row)
    library, handle, fields = asking.library, asking.handle, asking.fields
    asking.attempt("memory", lambda: _memory(asking))
    asking.attempt("mig", lambda: _mig(asking))
    count = asking.attempt("processes", lambda: library.processes(handle))
    if count is not None:
        fields["processes"] = count
        asking.observe(asking.key, "processes", "count", float(count), "nvmlDeviceGetComputeRunningProcesses")
    asking.attempt("fabric_state", lambda: fields.update(fabric(library, handle)))
    asking.attempt("sram_threshold", lambda: _sram(asking))
    links(asking, _values(asking))


def _memory(asking: Asking) -> None:
    said = asking.library.memory(asking.handle)
    asking.fields.update(memory=said.total, memory_used=said.used)


def _mig(asking: Asking) -> None:
    """Whether the GPU is cut into instances, and into how many."""
    library, handle = asking.library, asking.handle
    on = library.ask("DeviceGetMigMode", handle)[0] == 1
    asking.fields.update(mig=on, mig_instances=None if on else 0)
    if on:
        places = range(min(library.ask("DeviceGetMaxMigDeviceCount", handle), _MOST_INSTANCES))
        asking.fields["mig_instances"] = sum(_is_instance(asking, place) for place in places)


def _is_instance(asking: Asking, place: int) -> bool:
    try:
        asking.library.ask("DeviceGetMigDeviceHandleByIndex", asking.handle, place)
    except Refused as refusal:
        if refusal.code not in (NOT_FOUND, INVALID_ARGUMENT):
            raise
        return False
    return True


def _sram(asking: Asking) -> None:
    errors = _SramErrors(version=1 << 24 | sizeof(_SramErrors))
    asking.library.fill("DeviceGetSramEccErrorStatus", asking.handle, errors)
    asking.fields["sram_threshold"] = bool(errors.too_many)


def _remapped(asking: Asking) -> None:
    """The four fields of remapped rows, of a driver that has no numbers for them."""
    correctable, uncorrectable, pending, failed = asking.library.ask("DeviceGetRemappedRows", asking.handle)
    asking.fields.update(remapped_correctable=correctable, remapped_uncorrectable=uncorrectable)
    asking.fields.update(remap_pending=bool(pending), remap_failed=bool(failed))


def _values(asking: Asking) -> Mapping[Field, float | Refused]:
    """All that has numbers, in one call: fields of Gpu, its counters, and what is asked of its links next."""
    numbers = (*(value.number for value in _VALUES), _PCIE_REPLAY, *_THROTTLED.values(), *OF_ALL_LINKS)
    data = [(number, ALL_LINKS) for number in NVLINK_DATA.values()]
    said = asking.numbers([*((number, 0) for number in numbers), *data])
    for value in _VALUES:
        _take(asking, value, said[value.number, 0])
        if value.row.field in _COUNTED and (count := asking.fields.get(value.row.field)) is not None:
            asking.observe(asking.key, value.row.field, "count", float(count), f"NVML field {value.number}")
    pending = said[_REMAP_PENDING, 0]
    if isinstance(pending, Refused) and pending.code in ABSENT:
        asking.attempt("remap_pending", lambda: _remapped(asking))
        if "remap_pending" not in asking.fields:  # GPUs before Ampere retire pages instead
            asking.take(Row("remap_pending", ("DeviceGetRetiredPagesPendingStatus",), read=bool))
    asking.count(asking.key, "pcie_replay", _PCIE_REPLAY, said[_PCIE_REPLAY, 0])
    for name, number in NVLINK_DATA.items():
        asking.count(asking.key, name, number, said[number, ALL_LINKS], "bytes", 1 / 1024)
    for name, number in _THROTTLED.items():
        asking.count(asking.key, name, number, said[number, 0], "seconds", 1e9)
    return said


def _take(asking: Asking, value: _Value, answer: float | Refused) -> None:
    """A field by its number; where that gives nothing, by its call."""
    row = value.row
    if isinstance(answer, Refused) and row.calls:
        asking.take(row)
    else:
        asking.attempt(row.field, lambda: asking.fields.update({row.field: row.read(answered(answer))}))
