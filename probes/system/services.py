"""NVIDIA's background services, from their systemd control groups."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.machine import OWN_SERVICE, Service
from ...models.facts.records import Record
from ..host.host import Host, exists
from ..pcie.bound_devices import NVIDIA, gpus
from ..sysfs.fact_reader import FactReader

FABRIC_MANAGER = "nvidia-fabricmanager"
BINARY = "usr/bin/nv-fabricmanager"
DEADLINE = 5.0  # seconds
_SERVICES = (FABRIC_MANAGER, "nvidia-imex", "nvidia-persistenced")
# cgroup v2, systemd's v2 tree beside v1, and v1 (kernel documentation, cgroup-v2).
_SLICES = tuple(f"sys/fs/cgroup/{tree}system.slice" for tree in ("", "unified/", "systemd/"))
# Only the root cgroup lacks this file. If it exists, a container sees its own cgroup.
_NOT_THE_ROOT = "sys/fs/cgroup/cgroup.type"


def read_services(host: Host) -> Iterator[Record]:
    """Yield a `Service` for each, with its running state. Nothing without NVIDIA GPUs or the host's cgroups."""
    if not gpus(host, NVIDIA):
        return
    folder = _slice(host)
    if folder:
        for name in _SERVICES:
            reading = FactReader(host, Service, name, f"{folder}/{name}.service")
            running = reading.take("running", "cgroup.procs", bool)
            reading.set(running=False if "running" in reading.absent else running)
            yield from reading.records()
        own = FactReader(host, Service, OWN_SERVICE, f"{folder}/{OWN_SERVICE}.service")
        own.take("running", "cgroup.procs", bool)
        if "running" not in own.absent:  # most machines do not run this program as a service
            yield from own.records()
    if exists(host, BINARY):
        yield from host.call("fabric_manager", deadline=DEADLINE)


def _slice(host: Host) -> str | None:
    if exists(host, _NOT_THE_ROOT):
        return None
    return next((folder for folder in _SLICES if exists(host, folder)), None)
