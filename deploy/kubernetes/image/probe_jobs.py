"""Creates a job for each GPU node without one. The job measures the node as soon as all its GPUs are free.

Usage: probe_jobs.py TEMPLATE [MOST]. The template is a Job in YAML. At most MOST (50) jobs are created at once. The
cluster removes a finished job after ttlSecondsAfterFinished. Until then the node counts as measured.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from linkgauge.agent.kubernetes.cluster_api import ApiError, Cluster, here

GPUS = "nvidia.com/gpu"
_CONFLICT = 409
_LONGEST = 63  # characters of a job's name
Object = Mapping[str, Any]


def missing(nodes: Collection[Object], jobs: Collection[Object], template: Object) -> Iterator[dict[str, Any]]:
    """A job for each schedulable node that has GPUs and no job yet, sorted by the name of the node."""
    known = {job["metadata"]["name"] for job in jobs}
    for node in sorted(nodes, key=lambda one: str(one["metadata"]["name"])):
        number = int(node.get("status", {}).get("allocatable", {}).get(GPUS, "0"))
        if number and not node.get("spec", {}).get("unschedulable"):
            job = job_of(template, node["metadata"]["name"], number)
            if job["metadata"]["name"] not in known:
                yield job


def job_of(template: Object, node: str, gpus: int) -> dict[str, Any]:
    """The template for this node only, with all its GPUs. The scheduler decides when it starts."""
    job: dict[str, Any] = deepcopy(dict(template))
    job["metadata"]["name"] = _name(job["metadata"]["name"], node)
    pod = job["spec"]["template"]["spec"]
    this_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    pod["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [this_node]}}
    }
    pod["containers"][0]["resources"]["limits"][GPUS] = str(gpus)
    return job


def _name(begin: str, node: str) -> str:
    name = f"{begin}-{node.replace('.', '-')}"
    if len(name) <= _LONGEST and "." not in node:
        return name
    digest = hashlib.sha256(node.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9].rstrip('-')}-{digest}"


def create_missing_jobs(cluster: Cluster, template: Object, most: int) -> list[str]:
    """Create the missing jobs. Returns their names. Raises ApiError."""
    namespace = f"/apis/batch/v1/namespaces/{template['metadata']['namespace']}/jobs"
    selector = ",".join(f"{key}={value}" for key, value in template["metadata"]["labels"].items())
    nodes = cluster.ask("GET", "/api/v1/nodes?labelSelector=nvidia.com/gpu.present%3Dtrue")["items"]
    jobs = cluster.ask("GET", f"{namespace}?labelSelector={quote(selector)}")["items"]
    created: list[str] = []
    for job in missing(nodes, jobs, template):
        if len(created) == most:
            break
        try:
            cluster.ask("POST", namespace, job)
        except ApiError as refused:
            if refused.code != _CONFLICT:  # another run has created it
                raise
        else:
            created.append(job["metadata"]["name"])
    return created


def main() -> None:
    """Create the missing jobs and print their names."""
    try:
        template = yaml.safe_load(Path(sys.argv[1]).read_text())
        created = create_missing_jobs(here(), template, int(sys.argv[2]) if len(sys.argv) > 2 else 50)
    except (ApiError, OSError) as wrong:
        sys.exit(str(wrong))
    print(f"{len(created)} jobs: {' '.join(created)}")


if __name__ == "__main__":
    main()
