"""To whom a scheduler has given this machine, or devices of it: also where no process of the job runs just now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ..host.host import Host, Unreadable

_CGROUPS = "sys/fs/cgroup"
# cgroup.conf(5) of Slurm: version 2 below the scope of its step daemon, version 1 below each controller.
_SCOPE = re.compile(r"(?:.+_)?slurmstepd\.scope")
_TREE = re.compile(r"slurm(?:_.+)?")
_JOB = re.compile(r"job_([0-9]{1,12})")
_OWN_JOB = re.compile(r"slurm.*/job_([0-9]{1,12})(?:/|$)")
# Which devices the kubelet has given to which pod (pkg/kubelet/cm/devicemanager/checkpoint of Kubernetes).
_PODS = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
_POD_FOLDERS = "var/lib/kubelet/pods"  # by their UIDs; there before their containers, and until they are removed
_POD_CGROUPS = re.compile(r"kubepods(?:\.slice)?")


class Unknown(Exception):
    """A scheduler runs here, and what it gave to whom cannot be read. The message is the reason."""


class _Entry(msgspec.Struct, rename="pascal"):
    pod_uid: str = msgspec.field(default="", name="PodUID")
    resource_name: str = ""


class _Data(msgspec.Struct, rename="pascal"):
    pod_device_entries: list[_Entry] | None = None


class _Checkpoint(msgspec.Struct, rename="pascal"):
    data: _Data


def allocations(host: Host, owner: str | None = None) -> Mapping[str, str]:
    """What belongs to whom: {"slurm:4711": "Slurm job 4711"}; without what is the caller's own.

    `owner` names that ("slurm:4711", "kubernetes:POD-UID"); a Slurm job that this process is part of is known without.
    Raises Unknown.
    """
    found = {**_of_slurm(host, owner), **_of_kubernetes(host, owner)}
    own = {owner, *_own(host)}
    return {who: text for who, text in found.items() if who not in own}


def _own(host: Host) -> list[str]:
    try:
        return [f"slurm:{job}" for job in _OWN_JOB.findall(host.read("proc/self/cgroup") or "")]
    except Unreadable:
        return []


def _of_slurm(host: Host, owner: str | None) -> dict[str, str]:
    try:
        trees = list(_slurm_trees(host))
        jobs = [job[1] for tree in trees for name in host.list(tree) if (job := _JOB.fullmatch(name))]
        if not trees and _runs(host, "slurmd") and not (owner or "").startswith("slurm:"):
            raise Unknown("slurmd runs, and no cgroups show which jobs it has started (ProctrackType is not cgroup)")
    except Unreadable as refusal:
        raise Unknown(f"{refusal.path}: {refusal.why}") from None
    return {f"slurm:{job}": f"Slurm job {job}" for job in jobs}


def _slurm_trees(host: Host) -> Iterator[str]:
    """The folders in which jobs have one of their own."""
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


def _of_kubernetes(host: Host, owner: str | None) -> dict[str, str]:
    ours = (owner or "").startswith("kubernetes:")
    try:
        text = host.read(_PODS)
        if text is None:
            if not ours and _has_pods(host) and not host.list("var/lib/kubelet"):
                raise Unknown("pods run, and /var/lib/kubelet, which says what they were given, is not here")
            return {}
        entries = msgspec.json.decode(text, type=_Checkpoint).data.pod_device_entries or []
    except (Unreadable, msgspec.DecodeError) as refusal:
        if ours:
            return {}
        raise Unknown(f"{_PODS}: {getattr(refusal, 'why', refusal)}") from None
    there = _pods_there(host)
    return {
        f"kubernetes:{one.pod_uid}": f"pod {one.pod_uid} ({one.resource_name})"
        for one in entries
        if not there or one.pod_uid in there
    }


def _pods_there(host: Host) -> list[str]:
    """The pods that have not been removed; none where nothing says so.

    What was given to a pod stays written down until the kubelet gives something to the next one
    (https://github.com/kubernetes/kubernetes/issues/137010).
    """
    try:
        return host.list(_POD_FOLDERS)
    except Unreadable:
        return []


def _has_pods(host: Host) -> bool:
    """Outside of containers the pods' cgroups are seen, inside the pod's own service account."""
    names = (*host.list(_CGROUPS), *host.list(f"{_CGROUPS}/memory"))
    return any(map(_POD_CGROUPS.fullmatch, names)) or host.resolve("run/secrets/kubernetes.io") is not None
