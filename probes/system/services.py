"""Programs that NVIDIA machines run in the background, from the control groups that systemd keeps them in."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.machine import Service
from ...models.facts.records import Record
from ..host.host import Host, Unreadable
from ..pcie.bound_devices import NVIDIA, gpus
from ..sysfs.fact_reader import FactReader

FABRIC_MANAGER = "nvidia-fabricmanager"
BINARY = "usr/bin/nv-fabricmanager"
DEADLINE = 5.0  # seconds
_SERVICES = (FABRIC_MANAGER, "nvidia-imex", "nvidia-persistenced")
# Version 2 of control groups, systemd's tree beside version 1, and version 1 (kernel documentation, cgroup-v2).
_SLICES = tuple(f"sys/fs/cgroup/{tree}system.slice" for tree in ("", "unified/", "systemd/"))
_NOT_THE_ROOT = "sys/fs/cgroup/cgroup.type"  # which the root of all has not: here a container sees its own group


def read_services(host: Host) -> Iterator[Record]:
    """A `Service` for each: whether systemd runs it. Nothing without NVIDIA GPUs, or where the host's are not seen."""
    if not gpus(host, NVIDIA):
        return
    folder = _slice(host)
    if folder:
        for name in _SERVICES:
            reading = FactReader(host, Service, name, f"{folder}/{name}.service")
            running = reading.take("running", "cgroup.procs", bool)
            reading.set(running=False if "running" in reading.absent else running)
            yield from reading.records()
    if _there(host, BINARY):
        yield from host.call("fabric_manager", deadline=DEADLINE)


def _slice(host: Host) -> str | None:
    if _there(host, _NOT_THE_ROOT):
        return None
    return next((folder for folder in _SLICES if _there(host, folder)), None)


def _there(host: Host, path: str) -> bool:
    try:
        return host.resolve(path) is not None
    except Unreadable:
        return False
