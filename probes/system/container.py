"""Whether this process runs in a container, from what container managers leave there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..host.host import Host, Unreadable

# Files and folders that are there in a container of that kind alone. A pod may have another's as well.
_MARKS: Mapping[str, str] = {
    "run/secrets/kubernetes.io": "kubernetes",  # the pod's service account
    "run/.containerenv": "podman",
    ".dockerenv": "docker",
    ".singularity.d": "apptainer",
}
# Where a manager puts its name (https://systemd.io/CONTAINER_INTERFACE).
_NAMED = ("run/systemd/container", "run/host/container-manager")
CGROUP = "proc/1/cgroup"
_CGROUPS: Mapping[str, str] = {"kubepods": "kubernetes", "libpod": "podman", "docker": "docker", "lxc": "lxc"}
_SECOND = "proc/2/comm"  # outside of all containers the second process is the kernel's, for ever


def container(host: Host) -> str | None:
    """What runs this process: "docker", "kubernetes" ..., "other"; "" for none; None where nothing tells."""
    for path, name in _MARKS.items():
        if _there(host, path):
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
    """What of that file is read here: the rest numbers pods and containers."""
    return f"0::/{'/'.join(mark for mark in _CGROUPS if mark in cgroups)}" if cgroups else ""


def _there(host: Host, path: str) -> bool:
    try:
        return host.resolve(path) is not None
    except Unreadable:
        return False  # what others may not see is not this container's


def _text(host: Host, path: str) -> str | None:
    try:
        return host.read(path)
    except Unreadable:
        return None
