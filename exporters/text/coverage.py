"""How well independent evidence supports the verdict, and what a verdict over dumps is about."""

from __future__ import annotations

from collections.abc import Mapping

from ...models.catalog import codes
from ...models.report import Corroboration, Coverage, CoverageGroup, Report
from .terminal import safe
from .vocabulary import counted, device_counts, listed

_MOST = 4  # subjects named in the line; the JSON has all
_BY: Mapping[Corroboration, str] = {
    "site": "site file",
    "profile": "machine type",
    "product": "product",
    "cohort": "cohort",
    "baseline": "history",
}
_AREAS = {  # by the beginning of a code
    "PCIe links": ("pcie-", "iommu-"),
    "GPU state": ("gpu-", "driver-"),
    "NVLink state": ("nvlink-", "nvswitch-", "fabric-", "imex-", "p2p-"),
    "NIC ports": ("nic-", "gdr-"),
    "CPUs and memory": ("cpu-", "numa-", "host-memory"),
    "storage": ("storage-", "gds-"),
    "settings of jobs": ("memlock-", "shm-", "nccl-"),
    "places of devices": ("device-",),
    "rates": ("bandwidth-", "node-slow"),
}
_HOST = ("package", "numa")
_KINDS = {  # of devices that an area is about; without an entry, it is about all
    "GPU state": ("gpu",),
    "NVLink state": ("gpu", "nvswitch"),
    "NIC ports": ("nic", "port"),
    "CPUs and memory": _HOST,
    "storage": ("nvme", "disk", "array"),
    "PCIe links": ("gpu", "nvswitch", "nic", "nvme", *_HOST),
}
_ONE: Mapping[CoverageGroup, str] = {"links": "link", "counts": "count", "states": "state"}


def coverage_text(coverage: Coverage, brief: bool) -> str:
    """ "96 of 99 links corroborated: 40 by machine type, 56 by cohort; 3 uncorroborated: 0000:81:00.0, ...".

    `brief`: only the numbers, "96 of 99 links, 5 of 5 counts corroborated".
    """
    groups = [group for group in _ONE if _size(coverage, group)]
    if brief and groups:
        return f"{', '.join(_share(coverage, group) for group in groups)} corroborated"
    return ". ".join(_group(coverage, group) for group in groups)


def _share(coverage: Coverage, group: CoverageGroup) -> str:
    """ "96 of 99 links"."""
    return f"{sum(coverage.corroborated.get(group, {}).values())} of {counted(_size(coverage, group), _ONE[group])}"


def _size(coverage: Coverage, group: CoverageGroup) -> int:
    without = sum(one.group == group for one in coverage.uncorroborated)
    return sum(coverage.corroborated.get(group, {}).values()) + without


def _group(coverage: Coverage, group: CoverageGroup) -> str:
    by = coverage.corroborated.get(group, {})
    without = [safe(one.subject) for one in coverage.uncorroborated if one.group == group]
    text = f"{_share(coverage, group)} corroborated"
    text += f": {', '.join(f'{by[name]} by {_BY[name]}' for name in _BY if name in by)}" if by else ""
    return text + (f"; {len(without)} uncorroborated: {listed(without, _MOST)}" if without else "")


def scope_of(report: Report) -> str:
    """The areas in which a fault would have been found, and the devices: "NVLink state of 8 GPUs"."""
    judged = [code for code, judged in report.checks.items() if judged and code in codes()]
    found = [code for code in judged if set(codes()[code].severity) != {"info"}]
    areas = dict.fromkeys(area for area, prefixes in _AREAS.items() for code in found if code.startswith(prefixes))
    kinds = [device.kind for device in report.topology.devices]
    known = None if any(area not in _KINDS for area in areas) else {kind for area in areas for kind in _KINDS[area]}
    devices = device_counts([kind for kind in kinds if known is None or kind in known])
    return ", ".join(areas) + (f" of {', '.join(devices)}" if devices else "")
