"""Recorded machines without one of their parts."""

from __future__ import annotations

from linkgauge.probes.host.entries import Folder, Link
from linkgauge.probes.host.recorded import Recorded

_DRIVERS = "sys/bus/pci/drivers"


def without_device(recorded: Recorded, address: str) -> Recorded:
    """The machine without this PCI device, and without its driver's devices."""
    entries = {
        path: entry
        for path, entry in recorded.entries.items()
        if address not in path and not (isinstance(entry, Link) and address in str(entry.target))
    }
    return Recorded(recorded.taken, entries, _without_lines(recorded, address))


def without_nvme_controller(recorded: Recorded, address: str) -> Recorded:
    """The machine whose NVMe drive is on the bus, bound to its driver, and has no controller."""
    return without_entries(recorded, f"/{address}/nvme/")


def unbound(recorded: Recorded, address: str, driver: str | None = None) -> Recorded:
    """The machine whose function has another driver or none, and so none of its driver's devices."""
    parts = (f"/{address}/{devices}/" for devices in ("net", "infiniband", "nvme"))
    bare = without_entries(recorded, *parts)
    names = [path for path in bare.entries if path.startswith(_DRIVERS) and path.endswith(f"/{address}")]
    link = next(
        path for path in bare.entries if path.startswith("sys/devices/") and path.endswith(f"/{address}/driver")
    )
    entries = {path: entry for path, entry in bare.entries.items() if path not in (*names, link)}
    if driver:
        entries[f"{_DRIVERS}/{driver}"] = Folder()
        entries[f"{_DRIVERS}/{driver}/{address}"] = bare.entries[names[0]]
        entries[link] = Link(f"/{_DRIVERS}/{driver}")
    return Recorded(recorded.taken, entries, recorded.calls)


def _without_lines(recorded: Recorded, text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {call: tuple(line for line in lines if text not in line) for call, lines in recorded.calls.items()}


def without_entries(recorded: Recorded, *parts: str) -> Recorded:
    """The machine without the entries whose path, or whose target, contains one of these texts."""

    def is_left(path: str, entry: object) -> bool:
        target = str(entry.target) if isinstance(entry, Link) else ""
        return not any(part in f"{path}/" or part in f"{target}/" for part in parts)

    entries = {path: entry for path, entry in recorded.entries.items() if is_left(path, entry)}
    return Recorded(recorded.taken, entries, recorded.calls)
