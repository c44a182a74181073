"""One CPU of each package. Values of a package are read from this CPU, not from all its CPUs."""

from __future__ import annotations

from collections.abc import Mapping

from ..host.host import Host, Unreadable
from ..parsing.parsers import cpu_list, decimal

CPUS = "sys/devices/system/cpu"


def first_cpus(host: Host) -> Mapping[str, int]:
    """The first CPU of each package, by package name. The kernel may not name all packages (see cpu.py)."""
    first: dict[str, int] = {}
    placed: set[int] = set()
    try:
        for cpu in cpu_list(host.read(f"{CPUS}/online") or ""):
            if cpu in placed:
                continue
            folder = f"{CPUS}/cpu{cpu}/topology"
            package = host.read(f"{folder}/physical_package_id")
            siblings = host.read(f"{folder}/package_cpus_list") or host.read(f"{folder}/core_siblings_list")
            if package is None or not siblings:
                break
            first.setdefault(f"package{max(decimal(package), 0)}", cpu)
            placed |= {cpu, *cpu_list(siblings)}
    except (Unreadable, ValueError):
        return first
    return first
