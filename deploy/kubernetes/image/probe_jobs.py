"""A job for each GPU node that has none, which measures there as soon as all of its GPUs are free.

probe_jobs.py TEMPLATE [MOST]: the template is a Job in YAML; at most MOST (50) are made at once. A job that has ended
is removed by the cluster after ttlSecondsAfterFinished: until then the node counts as measured.
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
    """A job for each node with GPUs that may be given pods and has no job yet, in the order of their names."""
    known = {job["metadata"]["name"] for job in jobs}
    for node in sorted(nodes, key=lambda one: str(one["metadata"]["name"])):
        number = int(node.get("status", {}).get("allocatable", {}).get(GPUS, "0"))
        if number and not node.get("spec", {}).get("unschedulable"):
            job = job_of(template, node["metadata"]["name"], number)
            if job["metadata"]["name"] not in known:
                yield job


def job_of(template: Object, node: str, gpus: int) -> dict[str, Any]:
    """The template on that node alone, with all of its GPUs. The scheduler still decides when."""
    job: dict[str, Any] = deepcopy(dict(template))
    job["metadata"]["name"] = _name(job["metadata"]["name"], node)
    pod = job["spec"]["template"]["spec"]
    here_alone = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    pod["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here_alone]}}
    }
    pod["containers"][0]["resources"]["limits"][GPUS] = str(gpus)
    return job


def _name(begin: str, node: str) -> str:
    name = f"{begin}-{node.replace('.', '-')}"
    if len(name) <= _LONGEST and "." not in node:
        return name
    digest = hashlib.sha256(node.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9].rstrip('-')}-{digest}"


def make(cluster: Cluster, template: Object, most: int) -> list[str]:
    """Make what is missing; the names of the new jobs. Raises ApiError."""
    namespace = f"/apis/batch/v1/namespaces/{template['metadata']['namespace']}/jobs"
    selector = ",".join(f"{key}={value}" for key, value in template["metadata"]["labels"].items())
    nodes = cluster.ask("GET", "/api/v1/nodes?labelSelector=nvidia.com/gpu.present%3Dtrue")["items"]
    jobs = cluster.ask("GET", f"{namespace}?labelSelector={quote(selector)}")["items"]
    made: list[str] = []
    for job in missing(nodes, jobs, template):
        if len(made) == most:
            break
        try:
            cluster.ask("POST", namespace, job)
        except ApiError as refused:
            if refused.code != _CONFLICT:  # made by another run meanwhile
                raise
        else:
            made.append(job["metadata"]["name"])
    return made


def main() -> None:
    """Make them, and say which."""
    try:
        template = yaml.safe_load(Path(sys.argv[1]).read_text())
        made = make(here(), template, int(sys.argv[2]) if len(sys.argv) > 2 else 50)
    except (ApiError, OSError) as wrong:
        sys.exit(str(wrong))
    print(f"{len(made)} jobs: {' '.join(made)}")


if __name__ == "__main__":
    main()
