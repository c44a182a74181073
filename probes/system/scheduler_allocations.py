"""Jobs and pods to which a scheduler has allocated this machine or its devices, even without a running process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ..host.host import Host, Unreadable

_CGROUPS = "sys/fs/cgroup"
# cgroup.conf(5) of Slurm: with cgroup v2 below the scope of its step daemon, with v1 below each controller.
_SCOPE = re.compile(r"(?:.+_)?slurmstepd\.scope")
_TREE = re.compile(r"slurm(?:_.+)?")
_JOB = re.compile(r"job_([0-9]{1,12})")
_OWN_JOB = re.compile(r"slurm.*/job_([0-9]{1,12})(?:/|$)")
# The kubelet's device allocations by pod (pkg/kubelet/cm/devicemanager/checkpoint of Kubernetes).
_PODS = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
_POD_FOLDERS = "var/lib/kubelet/pods"  # a folder for each pod UID, from before container start until pod removal
_POD_CGROUPS = re.compile(r"kubepods(?:\.slice)?")


class Unknown(Exception):
    """A scheduler runs here, but its allocations cannot be read. The message is the reason."""


class _Entry(msgspec.Struct, rename="pascal"):
    pod_uid: str = msgspec.field(default="", name="PodUID")
    resource_name: str = ""


class _Data(msgspec.Struct, rename="pascal"):
    pod_device_entries: list[_Entry] | None = None


class _Checkpoint(msgspec.Struct, rename="pascal"):
    data: _Data


def allocations(host: Host, owner: str | None = None) -> Mapping[str, str]:
    """Return the allocations of others, for example {"slurm:4711": "Slurm job 4711"}.

    `owner` is the caller's own allocation ("slurm:4711", "kubernetes:POD-UID"). The Slurm job of this process is
    detected automatically. Raises Unknown.
    """
    found = {**_slurm_allocations(host, owner), **_kubernetes_allocations(host, owner)}
    own = {owner, *_own(host)}
    return {who: text for who, text in found.items() if who not in own}


def _own(host: Host) -> list[str]:
    try:
        return [f"slurm:{job}" for job in _OWN_JOB.findall(host.read("proc/self/cgroup") or "")]
    except Unreadable:
        return []


def _slurm_allocations(host: Host, owner: str | None) -> dict[str, str]:
    try:
        trees = list(_slurm_trees(host))
        jobs = [job[1] for tree in trees for name in host.list(tree) if (job := _JOB.fullmatch(name))]
        if not trees and _runs(host, "slurmd") and not (owner or "").startswith("slurm:"):
            raise Unknown("slurmd runs, but no cgroups show its jobs (ProctrackType is not cgroup)")
    except Unreadable as refusal:
        raise Unknown(f"{refusal.path}: {refusal.why}") from None
    return {f"slurm:{job}": f"Slurm job {job}" for job in jobs}


def _slurm_trees(host: Host) -> Iterator[str]:
    """Yield the cgroup folders that contain a folder for each job."""
    for name in host.list(f"{_CGROUPS}/system.slice"):
        if _SCOPE.fullmatch(name):
            yield f"{_CGROUPS}/system.slice/{name}"
    for controller in ("freezer", "memory", "cpuset", "devices"):
        for name in host.list(f"{_CGROUPS}/{controller}"):
            if _TREE.fullmatch(name):
                tree = f"{_CGROUPS}/{controller}/{name}"
                yield from (f"{tree}/{user}" for user in host.list(tree) if user.startswith("uid_"))
                yield tree


def _runs(host: Host, program: str) -> bool:
    for process in host.list("proc"):
        if process.isdecimal():
            try:
                if host.read(f"proc/{process}/comm") == program:
                    return True
            except Unreadable:
                continue
    return False


def _kubernetes_allocations(host: Host, owner: str | None) -> dict[str, str]:
    is_own_pod = (owner or "").startswith("kubernetes:")
    try:
        text = host.read(_PODS)
        if text is None:
            if not is_own_pod and _has_pods(host) and not host.list("var/lib/kubelet"):
                raise Unknown("pods run, but /var/lib/kubelet with their device allocations is not visible")
            return {}
        entries = msgspec.json.decode(text, type=_Checkpoint).data.pod_device_entries or []
    except (Unreadable, msgspec.DecodeError) as refusal:
        if is_own_pod:
            return {}
        raise Unknown(f"{_PODS}: {getattr(refusal, 'why', refusal)}") from None
    existing = _existing_pods(host)
    return {
        f"kubernetes:{one.pod_uid}": f"pod {one.pod_uid} ({one.resource_name})"
        for one in entries
        if not existing or one.pod_uid in existing
    }


def _existing_pods(host: Host) -> list[str]:
    """Return the UIDs of existing pods; empty if unknown.

    The checkpoint keeps allocations of removed pods until the next allocation
    (https://github.com/kubernetes/kubernetes/issues/137010).
    """
    try:
        return host.list(_POD_FOLDERS)
    except Unreadable:
        return []


def _has_pods(host: Host) -> bool:
    """Whether pods run. The host sees the pods' cgroups; a pod sees its own service account."""
    names = (*host.list(_CGROUPS), *host.list(f"{_CGROUPS}/memory"))
    return any(map(_POD_CGROUPS.fullmatch, names)) or host.resolve("run/secrets/kubernetes.io") is not None
