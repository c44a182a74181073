"""`linkgauge collective`: turn its arguments into a request and render the times."""

from __future__ import annotations

from msgspec import Struct

from ....exporters.commands import collective as exporter
from ....models.bandwidth.collective_algorithms import SENT
from ....models.site.schema import Machine
from ....models.training.cluster import Cluster
from ....models.training.collective_time import Request, collective_of, curve, unit_gpus
from ...inputs.site_file import BadInput
from .cluster_spec import ClusterSpec, machine_and_cluster
from .message_size_option import read_size


class Group(Struct, frozen=True):
    """The GPUs that take part, and the algorithm."""

    within: str | None = None
    gpus: int | None = None
    sharded: int = 1
    active: int | None = None
    algorithm: str = "auto"


def rendered(op: str, size: str, spec: ClusterSpec, group: Group, many: bool, plot: bool, form: str) -> str:
    """The times as text, JSON or SVG; `many`: at all sizes. Raises BadInput."""
    asked, cluster = request(op, size, spec, group)
    try:
        found = collective_of(asked, cluster)
        rows = curve(asked, cluster) if many else ()
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None
    if form == "json":
        return exporter.as_json(found, cluster, rows)
    if form == "svg":
        from ....exporters.drawing.collective_curve import as_svg  # jinja2 takes time to load

        return as_svg(found, cluster, rows)
    return exporter.as_text(found, cluster, rows, plot)


def request(op: str, size: str, spec: ClusterSpec, group: Group) -> tuple[Request, Cluster]:
    """The request that the arguments describe, and the cluster. Raises BadInput."""
    machine, cluster = machine_and_cluster(spec)
    try:
        ranks = _ranks(machine, cluster, group)
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None
    stride = group.sharded
    if op == "send":  # from each GPU to the one at the same place of the next node, all at once; else to its neighbour
        stride, ranks, op = (max(1, ranks // 2), ranks, SENT) if ranks > cluster.levels[0].children else (1, 2, SENT)
        ranks = 2
    elif ranks % stride or ranks // stride < 2:
        raise BadInput(f"--sharded {stride}: {ranks} GPUs do not divide into groups of two or more at this distance")
    else:
        ranks //= stride
    return Request(op, read_size(size), ranks, stride, group.algorithm, group.active), cluster


def _ranks(machine: Machine, cluster: Cluster, group: Group) -> int:
    if group.within and group.gpus:
        raise BadInput("--within and --gpus exclude each other")
    if group.gpus:
        return group.gpus
    if group.within == "unit":
        return min(cluster.gpus, unit_gpus(cluster))
    if group.within == "node":
        return cluster.node_gpus
    parts = {"numa": machine.numa, "socket": machine.sockets, None: 1}[group.within]
    if not parts:
        raise BadInput(f"--within {group.within}: their number is not known for {machine.name}; write --gpus 4 instead")
    return cluster.gpus if group.within is None else cluster.node_gpus // parts
