"""The power state of PCI functions, from sysfs (ABI/testing/sysfs-bus-pci, power_state; Linux 5.11 or later)."""

from __future__ import annotations

from ..host.host import Host, Unreadable


def is_asleep(host: Host, folder: str) -> bool:
    """Whether the function in `folder` is in D3cold, without power.

    Every reader of link attributes, configuration space and sizes of windows checks this first. Since Linux 6.18 the
    kernel wakes a function in D3cold before it reads its registers (commit 48991e493507 of drivers/pci/pci-sysfs.c,
    also in stable releases). Older kernels show registers without power, as of a lost device. Reading this file wakes
    nothing. Before Linux 5.11 the file is absent, and the state is not known.
    """
    try:
        return host.read(f"{folder}/power_state") == "D3cold"
    except Unreadable:
        return False
