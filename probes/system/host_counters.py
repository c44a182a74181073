"""Thermal throttling of processors and memory errors (EDAC) since boot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Observation, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count
from ..sysfs.counter_files import read_counters
from ..sysfs.packages import CPUS, first_cpus

CONTROLLERS = "sys/devices/system/edac/mc"
_COUNTERS = ("ce_count", "ue_count")  # corrected, uncorrected (ABI/testing/sysfs-devices-edac)


def read_host_counters(host: Host) -> Iterator[Record]:
    """Yield observations of packages ("package0") and memory controllers ("mc0"). Nothing without kernel counters."""
    for package, cpu in first_cpus(host).items():
        yield from _throttled(host, package, f"{CPUS}/cpu{cpu}/thermal_throttle")
    try:
        controllers = [name for name in host.list(CONTROLLERS) if re.fullmatch("mc[0-9]{1,4}", name)]
    except Unreadable as refusal:
        yield refusal.missed("Node.edac", "node", CONTROLLERS)
        return
    for name in controllers:
        yield from read_counters(host, "Node.edac", name, f"{CONTROLLERS}/{name}", _COUNTERS, {})


def _throttled(host: Host, package: str, folder: str) -> Iterator[Record]:
    """Yield the seconds of thermal throttling of a package (only Intel: drivers/thermal/intel/therm_throt.c)."""
    path = f"{folder}/package_throttle_total_time_ms"
    try:
        text = host.read(path)
        if text is not None:
            yield Observation(
                about=package,
                quantity="throttle_time",
                unit="seconds",
                value=count(text) / 1000,
                at=host.now(),
                evidence=Evidence(path, text),
            )
    except Unreadable as refusal:
        yield refusal.missed("Package.throttle_time", package, path)
    except ValueError as wrong:
        yield NotChecked(
            what="Package.throttle_time", subject=package, reason=Reason.UNREADABLE, path=path, detail=str(wrong)
        )
