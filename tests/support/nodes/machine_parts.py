"""Recorded machines without one of their parts."""

from __future__ import annotations

from linkgauge.probes.host.entries import Link
from linkgauge.probes.host.recorded import Recorded

def without_device(recorded: Recorded, address: str) -> Recorded:
    """The machine without this PCI device, and without its driver's devices."""
    entries = {
        path: entry
        for path, entry in recorded.entries.items()
        if address not in path and not (isinstance(entry, Link) and address in str(entry.target))
    }
    return Recorded(recorded.taken, entries, _without_lines(recorded, address))


def without_nvme_controller(recorded: Recorded, address: str, keep_driver: bool = True) -> Recorded:
    """The machine whose NVMe drive is on the bus and has no controller; and no driver, unless `keep_driver`."""
    entries = {
        path: entry
        for path, entry in recorded.entries.items()
        if not (f"/{address}/nvme" in path or (isinstance(entry, Link) and f"/{address}/nvme" in str(entry.target)))
        and (keep_driver or not (path.endswith(f"/{address}/driver") or path.endswith(f"/drivers/nvme/{address}")))
    }
    return Recorded(recorded.taken, entries, recorded.calls)


def _without_lines(recorded: Recorded, text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {call: tuple(line for line in lines if text not in line) for call, lines in recorded.calls.items()}


def without_entries(recorded: Recorded, *parts: str) -> Recorded:
    """The machine without the entries whose path, or whose target, contains one of these texts."""

    def is_left(path: str, entry: object) -> bool:
        target = str(entry.target) if isinstance(entry, Link) else ""
        return not any(part in path or part in target for part in parts)

    entries = {path: entry for path, entry in recorded.entries.items() if is_left(path, entry)}
    return Recorded(recorded.taken, entries, recorded.calls)
