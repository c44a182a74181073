"""Fields that say in which state a device is. Two sources that disagree on one of them cannot both be believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from .gpu import Gpu, GpuLink, GpuPair
from .health import DiskHealth
from .machine import Array, Mount, Net, Nvme, Pci, Port
from .records import Fact

# The values of each field that are a fault whatever else is known. A width or a rate is a fault only by comparison.
Faults: TypeAlias = Mapping[str, frozenset[object]]
_NONE: frozenset[object] = frozenset()
_YES: frozenset[object] = frozenset({True})
_NO: frozenset[object] = frozenset({False})

STATES: Mapping[type[Fact], Faults] = {
    GpuLink: {"active": _NO, "speed": _NONE},
    GpuPair: {"read": _NONE, "write": _NONE, "nvlinks": _NONE},
    Gpu: {
        "pcie_width": _NONE,
        "nvlinks": _NONE,
        "ecc": _NONE,
        "mig": _NONE,
        "sram_threshold": _YES,
        "remap_pending": _YES,
        "remap_failed": _YES,
        "pending_repairs": frozenset({("memory channel",), ("TPC",), ("memory channel", "TPC")}),
        "unrepairable": _YES,
        "fabric_state": frozenset({"not started", "in progress"}),
        "fabric_status": _NONE,
    },
    Pci: {"width": _NONE, "max_width": _NONE, "max_speed": _NONE, "lost": _YES},
    Port: {"state": frozenset({"DOWN", "INIT", "ARMED"}), "physical_state": _NONE, "rate": _NONE},
    Net: {"carrier": _NO, "speed": _NONE},
    Nvme: {"state": frozenset({"dead"}), "critical_warning": _NONE},
    DiskHealth: {"passed": _NO},
    Array: {"state": frozenset({"degraded", "inactive", "broken"}), "missing": _NONE},
}


# Numbers of which the smaller one is the fault: active links, degrees below a limit, bytes.
_LESS: Mapping[type[Fact], frozenset[str]] = {
    Gpu: frozenset({"nvlinks", "temperature_margin"}),
    Mount: frozenset({"free"}),
}


def is_worse(kind: type[Fact], field: str, mine: object, theirs: object) -> bool:
    """Whether only `theirs` is a fault, so that it is kept in whatever order the sources are read."""
    if field in _LESS.get(kind, _NONE):
        return cast("float", theirs) < cast("float", mine)
    faults = STATES.get(kind, {}).get(field, _NONE)
    return theirs in faults and mine not in faults
