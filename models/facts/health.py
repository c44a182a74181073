"""What tools report of the health of processors and disks. Only dumps have these facts."""

from __future__ import annotations

from .records import Fact


class Temperature(Fact, frozen=True, kw_only=True):
    """A temperature of a processor; the key is the chip and the label: "coretemp-isa-0000 Package id 0"."""

    celsius: float | None = None
    critical: float | None = None  # the limit at which the processor lowers its clocks


class DiskHealth(Fact, frozen=True, kw_only=True):
    """The health of an ATA or SAS disk, from `smartctl`; the key is its name: "sda"."""

    model: str | None = None
    passed: bool | None = None  # the disk's own assessment
    failing: tuple[str, ...] | None = None  # attributes below their thresholds now
    pending: int | None = None  # sectors that could not be read, and may still be
    uncorrectable: int | None = None  # sectors that could not be read at the last scan
    reallocated: int | None = None  # sectors, or on SAS disks defects, that were replaced
    unrecovered: int | None = None  # errors in its life that it reported because it could not correct them
    unreadable: bool | None = None  # the latest self-test that ended found an error


class OfferedDevices(Fact, frozen=True, kw_only=True):
    """Devices of one kind that a node offers to Kubernetes; the key is the resource: "nvidia.com/gpu"."""

    capacity: int | None = None  # registered by the device plugin
    allocatable: int | None = None  # healthy by the device plugin
