"""Processes in the cgroups of jobs and pods."""

from __future__ import annotations

from errno import ENODEV

from ..host.host import Host, Unreadable

CGROUPS = "sys/fs/cgroup"
_UNITS = (".scope", ".slice", ".service")  # of systemd; all other names with a dot are files of a controller


class AllocationsUnknown(Exception):
    """A scheduler runs here, but its allocations cannot be read. The message is the reason."""


def populated(host: Host, folder: str) -> bool:
    """Whether a process lives in a cgroup or below it. A cgroup that is being removed has none. Raises Unreadable.

    cgroup v2 says so itself (kernel documentation, admin-guide/cgroup-v2, cgroup.events). cgroup v1 does not: there
    each cgroup below lists its own processes.
    """
    try:
        events = host.read(f"{folder}/cgroup.events")
        if events is not None:
            return "populated 1" in events.splitlines()
        if host.read(f"{folder}/cgroup.procs"):
            return True
        below = [name for name in host.list(folder) if "." not in name or name.endswith(_UNITS)]
    except Unreadable as refusal:
        if refusal.code == ENODEV:
            return False
        raise
    return any(populated(host, f"{folder}/{name}") for name in below)


def runs(host: Host, program: str) -> bool:
    """Whether a process with this name runs."""
    for process in host.list("proc"):
        if process.isdecimal():
            try:
                if host.read(f"proc/{process}/comm") == program:
                    return True
            except Unreadable:
                continue
    return False
