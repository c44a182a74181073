"""Jobs and pods that have this machine or its GPUs and RDMA devices."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..host.host import Host, Unreadable
from .pod_devices import pods_with_devices
from .slurm_jobs import slurm_jobs

_OWN_JOB = re.compile(r"slurm.*/job_([0-9]{1,12})(?:/|$)")


def allocations(host: Host, owner: str | None = None) -> Mapping[str, str]:
    """Return the allocations of others, for example {"slurm:4711": "Slurm job 4711"}.

    `owner` is the caller's own allocation ("slurm:4711", "kubernetes:POD-UID"). The Slurm job of this process is
    detected automatically. Raises AllocationsUnknown.
    """
    scheduler = (owner or "").partition(":")[0]
    own = {owner, *_own(host)}
    jobs = slurm_jobs(host, scheduler == "slurm")
    pods = pods_with_devices(host, scheduler == "kubernetes")
    found = {
        **{f"slurm:{job}": f"Slurm job {job}" for job in jobs},
        **{f"kubernetes:{uid}": f"pod {uid} ({devices})" for uid, devices in pods.items()},
    }
    return {who: text for who, text in found.items() if who not in own}


def _own(host: Host) -> list[str]:
    try:
        return [f"slurm:{job}" for job in _OWN_JOB.findall(host.read("proc/self/cgroup") or "")]
    except Unreadable:
        return []
