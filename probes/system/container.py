"""Whether this process runs in a container, detected from files of container managers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..host.host import Host, Unreadable, exists

# Files and folders that exist only in a container of that kind. A pod may also have those of its runtime.
_MARKS: Mapping[str, str] = {
    "run/secrets/kubernetes.io": "kubernetes",  # the pod's service account
    "run/.containerenv": "podman",
    ".dockerenv": "docker",
    ".singularity.d": "apptainer",
}
# Files with the manager's name (https://systemd.io/CONTAINER_INTERFACE).
_NAMED = ("run/systemd/container", "run/host/container-manager")
CGROUP = "proc/1/cgroup"
_CGROUPS: Mapping[str, str] = {"kubepods": "kubernetes", "libpod": "podman", "docker": "docker", "lxc": "lxc"}
_SECOND = "proc/2/comm"  # outside of containers process 2 always belongs to the kernel


def container(host: Host) -> str | None:
    """Return the container manager: "docker", "kubernetes" ..., "other"; "" without a container; None if unknown."""
    for path, name in _MARKS.items():
        if exists(host, path):
            return name
    for path in _NAMED:
        text = _text(host, path) or ""
        if re.fullmatch("[a-z0-9_-]{1,40}", text):
            return text
    cgroups = _text(host, CGROUP) or ""
    for mark, name in _CGROUPS.items():
        if mark in cgroups:
            return name
    second = _text(host, _SECOND)
    if second == "kthreadd":
        return ""
    return "other" if second or cgroups else None


def cgroup_marks(cgroups: str) -> str:
    """Return only the names of managers in a cgroup file, without the IDs of pods and containers."""
    return f"0::/{'/'.join(mark for mark in _CGROUPS if mark in cgroups)}" if cgroups else ""


def _text(host: Host, path: str) -> str | None:
    try:
        return host.read(path)
    except Unreadable:
        return None
