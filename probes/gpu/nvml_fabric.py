"""The state of a GPU in the NVLink fabric of its switches (nvmlDeviceGetGpuFabricInfoV).

The structures follow nvml.h. In nvidia-ml-py before 13 the UUID has 80 bytes, but the driver fills 16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ctypes import Structure, c_uint8, c_uint32, sizeof
from typing import Any
from uuid import UUID

from .nvml_library import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    VERSION_MISMATCH,
    Library,
    NvmlError,
)

STATES: Mapping[int, str] = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}
_COMPLETED = 3

# Two-bit parts of the health mask: first bit, bad value, meaning.
_PARTS = (
    (0, 1, "degraded bandwidth"),
    (2, 1, "route recovery"),
    (4, 1, "route unhealthy"),
    (6, 1, "access timeout recovery"),
    (12, 2, "no partition assigned"),
    (14, 2, "global fabric manager disconnected"),
)
# Incorrect configuration, four bits from bit 8: 0 means not supported, 1 means none.
_CONFIGURATIONS: Mapping[int, str] = {
    2: "system GUID",
    3: "chassis serial number",
    4: "no partition",
    5: "insufficient NVLinks",
    6: "incompatible GPU firmware",
    7: "invalid location",
    8: "invalid GPU state",
}

_JOINED: list[tuple[str, Any]] = [
    ("uuid", c_uint8 * 16),
    ("status", c_uint32),
    ("clique", c_uint32),
    ("state", c_uint8),
]


class _FabricInfo(Structure):
    """The structure of nvmlDeviceGetGpuFabricInfo, without a version."""

    _fields_ = _JOINED


class _FabricInfo2(Structure):
    """Version 2 adds the health mask."""

    _fields_ = [("version", c_uint32), *_JOINED, ("health", c_uint32)]


class _FabricInfo3(Structure):
    """Version 3 adds a summary of the health mask."""

    _fields_ = [("version", c_uint32), *_JOINED, ("health", c_uint32), ("summary", c_uint8)]


def fabric(library: Library, handle: Any) -> Mapping[str, Any]:
    """Return the fields of Gpu that begin with "fabric_". Raises NvmlError, and ValueError for an unknown state."""
    info = _fabric_info(library, handle)
    if info.state not in STATES:
        raise ValueError(f"{info.state} is no state of a fabric")
    fields: dict[str, Any] = {"fabric_state": STATES[info.state]}
    health = getattr(info, "health", 0)
    if health:  # 0 means that no part is supported: GPUs before Blackwell
        fields["fabric_faults"] = tuple(_faults(health))
    if info.state == _COMPLETED:  # "status must be checked only if state returns complete"
        fields["fabric_status"] = library.error_text(info.status) if info.status else "Success"
        fields["fabric_clique"] = info.clique
        fields["fabric_cluster"] = str(UUID(bytes=bytes(info.uuid))) if any(info.uuid) else None
    return fields


def _fabric_info(library: Library, handle: Any) -> Any:
    """Return the newest structure that the driver supports, filled."""
    for kind, number in ((_FabricInfo3, 3), (_FabricInfo2, 2)):
        try:
            return library.fill("DeviceGetGpuFabricInfoV", handle, kind(version=number << 24 | sizeof(kind)))
        except NvmlError as refusal:
            if refusal.code == FUNCTION_NOT_FOUND:
                break
            if refusal.code not in (INVALID_ARGUMENT, VERSION_MISMATCH):
                raise
    return library.fill("DeviceGetGpuFabricInfo", handle, _FabricInfo())


def _faults(health: int) -> Iterator[str]:
    for shift, bad, word in _PARTS:
        if health >> shift & 3 == bad:
            yield word
    configuration = health >> 8 & 0xF
    if configuration > 1:
        yield f"incorrect configuration: {_CONFIGURATIONS.get(configuration, configuration)}"
