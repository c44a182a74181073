"""Online CPUs, and one CPU of each package. Values of a package are read from this CPU, not from all its CPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..host.host import Host, Unreadable
from ..parsing.parsers import cpu_list, decimal

CPUS = "sys/devices/system/cpu"


def online_cpus(host: Host) -> tuple[int, ...]:
    """The online CPUs. Raises Unreadable and ValueError.

    Some sandboxes and copies of sysfs lack `online`. There, every CPU with a folder counts: the topology of a CPU that
    is offline cannot be read, so its reader leaves it out.
    """
    text = host.read(f"{CPUS}/online")
    return numbered(host, CPUS, "cpu") if text is None else cpu_list(text)


def numbered(host: Host, folder: str, name: str) -> tuple[int, ...]:
    """The numbers of the entries "cpu0", "cpu1" of a folder, ascending. Raises Unreadable."""
    matches = (re.fullmatch(rf"{name}([0-9]{{1,4}})", entry) for entry in host.list(folder))
    return tuple(sorted(int(match[1]) for match in matches if match))


def first_cpus(host: Host) -> Mapping[str, int]:
    """The first CPU of each package, by package name. The kernel may not name all packages (see cpu.py)."""
    first: dict[str, int] = {}
    placed: set[int] = set()
    try:
        for cpu in online_cpus(host):
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
