"""What is not known where a source was cut off: in the words in which rules say what they need."""

from __future__ import annotations

from collections.abc import Mapping

from ..models.said import NotChecked

# Kinds of facts, or fields where the rest of the kind has another source. What is not here judges nothing.
GIVES: Mapping[str, tuple[str, ...]] = {
    "node": ("Node",),
    "cpu": ("Package",),
    "numa": ("Numa",),
    "pci": ("Pci", "HostBridge"),
    "pci_links": ("Pci.speed", "Pci.width", "Pci.lost", "Pci.aer_correctable", "Pci.aer_nonfatal", "Pci.aer_fatal"),
    "gpus": ("Gpu", "GpuLink", "Driver"),
    "gpu_wiring": ("Gpu", "GpuLink", "GpuPair"),
    "kfd": ("Gpu", "GpuLink"),
    "net": ("Net",),
    "link_modes": ("Net.max_speed",),
    "rdma": ("Rdma", "Port"),
    "nvme": ("Nvme",),
    "disks": ("Disk",),
    "arrays": ("Array",),
    "mounts": ("Mount",),
    "pci_windows": ("Pci.bar1",),
    "pci_config": ("Pci.acs", "Pci.max_payload", "Pci.max_read_request"),
    "settings": ("Setting",),
    "services": ("Service",),
    "host_counters": ("Node.edac", "Package.throttle_time"),
    "kernel_log": ("Event",),
    "link_load": ("Pci.speed",),
}


def gaps(source: str, why: str, how: str | None = None) -> tuple[NotChecked, ...]:
    """One for each of what the source would have said."""
    return tuple(NotChecked(what=what, subject="node", why=why, how=how) for what in GIVES.get(source, (source,)))
