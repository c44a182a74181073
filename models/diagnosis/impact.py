"""Impact of findings: the factor by which collectives take longer on the limited links.

Names are those of operations: "all_reduce" and "alltoall" over the node's GPUs. A suffix names a further medium: in
"all_reduce@fabric" each GPU sends over its nearest NIC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..facts.gpu import Gpu, GpuLink
from ..facts.records import Flow
from ..graph.fair_share import shares
from ..graph.flow_paths import nearest_ports
from ..graph.routes import RateOf, limited, rated
from ..graph.topology import Hop
from ..inventory.snapshot import Snapshot
from ..report import Finding

FABRIC = "all_reduce@fabric"
_UNLIMITED = float("inf")
_MOST_PAIRS = 16  # GPUs; with more, the shares of all pairs take too long to compute


def weigh(snapshot: Snapshot, finding: Finding) -> Finding:
    """The finding with the slowdown of each collective from this finding's limits alone."""
    return replace(finding, impact={**finding.impact, **slowdowns(snapshot, [finding])})


def slowdowns(snapshot: Snapshot, findings: Iterable[Finding]) -> Mapping[str, float]:
    """The slowdown factor of each collective from the limits of all these findings together.

    The slowest GPU sets the time of a collective. All-reduce is a ring in the order of the names (bandwidth term of the
    ring algorithm, nccl-tests doc/PERFORMANCE.md). Over the fabric each GPU sends as much over its own NIC. A GPU
    without NVLinks uses PCIe, as in NCCL. The result is empty without limits, with fewer than two GPUs, or if the GPUs'
    links were not read.
    """
    known = [one for one in findings if one.limits]
    gpus = sorted(device.id for device in snapshot.topology.devices if device.kind == "gpu")
    joined = {link.gpu for link in snapshot.of(GpuLink).values()}
    read = [gpu.nvlinks is not None or gpu.key in joined for gpu in snapshot.of(Gpu).values()]
    if not known or len(gpus) < 2 or len(read) < len(gpus) or not all(read):
        return {}
    limits: dict[str, float] = {}
    for link, rate in (pair for one in known for pair in one.limits.items()):
        limits[link] = min(rate, limits.get(link, rate))
    whole = _whole(known)
    found = {name: _slower(snapshot, flows, whole, limits) for name, flows in _flows(snapshot, gpus).items()}
    return {name: round(factor, 3) for name, factor in found.items() if factor is not None}


def _flows(snapshot: Snapshot, gpus: Sequence[str]) -> Mapping[str, list[Flow]]:
    """The simultaneous flows of each collective."""
    ring = [Flow("copy", ends) for ends in zip(gpus, [*gpus[1:], gpus[0]], strict=True)]
    pairs = [Flow("copy", (a, b)) for a in gpus for b in gpus if a != b]
    few = {"alltoall": pairs} if len(gpus) <= _MOST_PAIRS else {}
    return {"all_reduce": ring, **few, FABRIC: list(_outwards(snapshot, gpus))}


def _outwards(snapshot: Snapshot, gpus: Sequence[str]) -> Iterator[Flow]:
    """From each GPU to one of its nearest ports. If there are fewer ports than GPUs, GPUs share ports."""
    taken: Counter[str] = Counter()
    for gpu in gpus:
        near = nearest_ports(snapshot.topology, gpu)
        if near:
            port = min(near, key=lambda one: taken[one])
            taken[port] += 1
            yield Flow("write", (gpu, port))


def _slower(snapshot: Snapshot, flows: Sequence[Flow], whole: RateOf, limits: Mapping[str, float]) -> float | None:
    """The slowdown factor; None if a flow has no path, no rate left, or no known limit."""
    before = shares(snapshot.topology, flows, whole)
    after = shares(snapshot.topology, flows, limited(limits, whole))
    if not flows or len(before) < len(flows) or len(after) < len(flows) or not min(after.values()):
        return None
    return min(before.values()) / min(after.values())


def _whole(findings: Iterable[Finding]) -> RateOf:
    """The rates of healthy links. A port without a rated rate gets the expected rate of its finding."""
    expected = {
        link: float(one.expected)
        for one in findings
        if one.unit == "bytes_per_second" and isinstance(one.expected, int | float)
        for link in one.limits
    }

    def rate(hop: Hop) -> float:
        if (known := rated(hop)) != _UNLIMITED:
            return known
        rates = [max(link.trained or 0.0, expected.get(link.id, 0.0)) for link in hop.links]
        return sum(rates) if all(rates) else _UNLIMITED

    return rate
