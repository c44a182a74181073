"""`linkgauge plan` for programs (docs/operate/plan.md): step time, bottleneck and best layout of a training job.

`plan` and `sweep` return the results of the models, `frame` returns either as a pandas table. They raise BadInput. Its
message names the constraint.
"""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from ....models.catalog.filesystems import FileSystem
from ....models.site.schema import Network
from ....models.training.checkpoint import Checkpoint, checkpoint_of
from ....models.training.cluster import Cluster
from ....models.training.hugging_face import network_of
from ....models.training.input_data import Reading, reading_of, recognised
from ....models.training.job_spec import JobSpec, read_job
from ....models.training.planner import Plan, Sweep, plan_of
from ....models.training.planner import sweep as sweep_of
from ...inputs.site_file import BadInput, read_text, site
from .cluster_spec import ClusterSpec, cluster, node_of


def plan(job: str, where: ClusterSpec) -> Plan:
    """Plan the layout that the job names: "llama3-70b,tp=8,dp=64,tokens=4M". Raises BadInput."""
    spec, cluster = _job_and_cluster(job, where, False)
    try:
        return plan_of(spec.job, spec.layout(cluster.gpus), cluster)
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None


def sweep(job: str, where: ClusterSpec, best: int = 10) -> tuple[Plan, Sweep]:
    """Try all layouts with the degrees that the job names. Returns the plan of the best one, and the sweep with the
    best layouts. Raises BadInput.
    """
    spec, cluster = _job_and_cluster(job, where, True)
    try:
        found = sweep_of(spec.job, cluster, best, fixed={**spec.fields, **spec.flags})
        return plan_of(spec.job, found.best[0].layout, cluster), found
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None


def names_layout(job: str, where: ClusterSpec) -> bool:
    """Whether the job names any part of a layout. Raises BadInput."""
    spec = _job(job, where)
    return bool(spec.fields or set(spec.flags) - {"precision"})


def size_of(job: str, where: ClusterSpec) -> float | None:
    """Bytes of the checkpoint that the job names. Raises BadInput."""
    return _job(job, where).checkpoint


def checkpoints(job: str, where: ClusterSpec, found: Plan) -> list[Checkpoint]:
    """The checkpoint of a job on each network file system of the site file. Raises BadInput."""
    size = size_of(job, where)
    return [checkpoint_of(found.job, found.cluster, store, size) for store in site(where.site).storage]


def readings(where: ClusterSpec, found: Plan) -> list[Reading]:
    """The reads of training data on each network file system of the site file with `iops`. Raises BadInput."""
    stores = site(where.site).storage
    each = (reading_of(found.job, found.cluster, found.step.usual, store) for store in stores)
    return [one for one in each if one]


def mounts(where: ClusterSpec) -> list[tuple[str, FileSystem]]:
    """The file systems of the node that the site file does not describe. Raises BadInput."""
    described = {store.mount for store in site(where.site).storage}
    node = node_of(where)
    return [one for one in recognised(node) if one[0] not in described] if node else []


def frame(found: Plan | Sweep) -> Any:
    """A pandas.DataFrame: one row per part of the step for a plan, one row per layout for a sweep.

    Needs pandas: pip install "linkgauge[frames]". Raises BadInput without it.
    """
    try:
        from ....exporters.formats.plan_frame import as_frame
    except ImportError:
        raise BadInput('pandas is not installed: pip install "linkgauge[frames]"') from None
    return as_frame(found)


def _job_and_cluster(job: str, where: ClusterSpec, sweep: bool) -> tuple[JobSpec, Cluster]:
    spec = _job(job, where)
    found = cluster(where)
    return spec.suited(found.gpus, where.nodes, sweep), found


def _job(job: str, where: ClusterSpec) -> JobSpec:
    name, *parts = job.split(",")
    further = list(site(where.site).network)
    if name.endswith(".json"):
        further.append(_from_file(name))
        job = ",".join((further[-1].name, *parts))
    try:
        return read_job(job, further)
    except ValueError as wrong:
        raise BadInput(f"{job}: {wrong}") from None


def _from_file(path: str) -> Network:
    """The model of a config.json, with the name of its folder. Raises BadInput."""
    try:
        config = msgspec.json.decode(read_text(path, ""), type=dict[str, Any])
        name = re.sub(r"[\s,]+", "-", os.path.basename(os.path.dirname(os.path.abspath(path)))) or "model"
        return network_of(name, config)
    except ValueError as wrong:
        raise BadInput(f"{path}: {wrong}") from None
