"""Impact of findings: the factor by which collectives, copies and computing take longer on what is left of the node.

Names are those of operations: "all_reduce" and "alltoall" over the node's GPUs, "compute" on the slowest GPU. A suffix
names a further medium: in "all_reduce@fabric" each GPU sends over its nearest ports, in "copy@host" to the memory of
its processor, in "read@storage" each disk sends to the memory of its processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from ..facts.gpu import Gpu, GpuLink
from ..facts.records import Flow
from ..graph.fair_share import shares
from ..graph.flow_paths import hops_of, nearest_ports
from ..graph.path_types import paths
from ..graph.routes import RateOf, limited, rated
from ..graph.topology import Hop
from ..inventory.snapshot import Snapshot
from ..report import Cost, Finding
from .effects import ALL, Effect, effect_of

FABRIC = "all_reduce@fabric"
HOST = "copy@host"
STORAGE = "read@storage"
COMPUTE = "compute"
SHOWN = 1.005  # a smaller factor is "not slower"
_UNLIMITED = float("inf")
_MOST_PAIRS = 16  # GPUs; with more, the shares of all pairs take too long to compute
_NOTHING = Effect()
_BESIDE_SWITCH = ("PIX", "PXB")  # paths that no root complex is part of


class Impact(Struct, frozen=True):
    """Slowdown factors by operation, and the cost that follows."""

    factors: Mapping[str, float]
    cost: Cost


def weigh(snapshot: Snapshot, found: Sequence[Finding]) -> tuple[list[Finding], Impact]:
    """The findings, each with its own impact as if it were alone, and the impact of all together.

    Findings that only inform do not count in the sum.
    """
    whole = _whole(found)
    effects = [effect_of(snapshot, one) for one in found]
    alone = [_impact(snapshot, [effect], whole) for effect in effects]
    weighed = [
        replace(one, impact={**one.impact, **each.factors}, cost=each.cost)
        for one, each in zip(found, alone, strict=True)
    ]
    together = [effect for one, effect in zip(found, effects, strict=True) if one.severity != "info"]
    return weighed, _impact(snapshot, together, whole)


def _impact(snapshot: Snapshot, effects: Iterable[Effect], whole: RateOf) -> Impact:
    acting = [one for one in effects if one != _NOTHING]
    known = [one for one in acting if one.known and not one.stops]
    left = _slowdowns(snapshot, reduce(_both, known), whole) if known else _NO_LOSS
    if left.stops or any(one.stops for one in acting):
        return Impact(left.factors, "cannot run")
    if any(factor > SHOWN for factor in left.factors.values()):
        return Impact(left.factors, "slower")
    # Copies through host memory cost time of processors and latency, which no rate shows.
    if any(not one.known or one.by_host for one in acting) or (known and not (left.judged and left.factors)):
        return Impact({}, "unknown")
    return Impact(left.factors, "none")


def _both(one: Effect, other: Effect) -> Effect:
    """Two effects at the same time. For a link, the smaller rate counts; for computing, the slower clock."""
    limits = dict(one.limits)
    for link, rate in other.limits.items():
        limits[link] = min(rate, limits.get(link, rate))
    return Effect(
        limits=limits,
        lost=one.lost | other.lost,
        absent=one.absent | other.absent,
        detours=one.detours | other.detours,
        by_host=one.by_host | other.by_host,
        compute=max(one.compute, other.compute),
    )


class _Left(Struct, frozen=True):
    """What an effect leaves: factors by operation; whether one has no path, and whether one uses what is affected."""

    factors: Mapping[str, float]
    stops: bool
    judged: bool


_NO_LOSS = _Left({}, False, True)


def _slowdowns(snapshot: Snapshot, effect: Effect, whole: RateOf) -> _Left:
    """The slowdown factor of each operation.

    The slowest GPU sets the time of a collective. All-reduce is a ring in the order of the names (bandwidth term of the
    ring algorithm, nccl-tests doc/PERFORMANCE.md). Over the fabric each GPU sends as much over its own port. A GPU
    without NVLinks uses PCIe, as in NCCL. Factors of the links are absent with fewer than two GPUs, or if the GPUs'
    links were not read.
    """
    factors = {COMPUTE: round(effect.compute, 3)} if effect.compute > 1 else {}
    if effect == Effect(compute=effect.compute):
        return _Left(factors, False, True)
    stops = judged = False
    for name, before, after in _flows(snapshot, effect):
        well = shares(snapshot.topology, before, whole)
        ill = shares(snapshot.topology, after, limited(effect.limits, whole))
        if not before or len(well) < len(before):
            continue
        if not after or len(ill) < len(after) or not min(ill.values()):
            stops = stops or name == FABRIC
            continue
        judged = judged or _concerns(snapshot, effect, before, after)
        factor = _factor(name, _sent(name, well), _sent(name, ill), effect)
        if factor > SHOWN or name not in (HOST, STORAGE):
            factors[name] = round(factor, 3)
    return _Left(factors, stops, judged)


def _concerns(snapshot: Snapshot, effect: Effect, before: Sequence[Flow], after: Sequence[Flow]) -> bool:
    """Whether the operation uses a link, port or disk of the effect. If none does, its cost is not known."""
    if before != after:
        return True
    links = (link.id for flow in before for hop in hops_of(snapshot.topology, flow) for link in hop.links)
    return bool(effect.limits) and any(link in effect.limits for link in links)


def _sent(name: str, rates: Mapping[Flow, float]) -> list[float]:
    """The rate of each flow; over the fabric of each GPU, which uses several ports if the node has more ports."""
    if name != FABRIC:
        return list(rates.values())
    gpus = dict[str, float]()
    for flow, rate in rates.items():
        gpus[flow.ends[0]] = gpus.get(flow.ends[0], 0.0) + rate
    return list(gpus.values())


def _factor(name: str, well: Sequence[float], ill: Sequence[float], effect: Effect) -> float:
    """Disks add up; else the slowest flow counts. Flows over an absent port are unknown: the fastest one is healthy."""
    if name == STORAGE:
        return sum(well) / sum(ill)
    return (max(well) if name == FABRIC and "port" in effect.absent else min(well)) / min(ill)


def _flows(snapshot: Snapshot, effect: Effect) -> Iterator[tuple[str, list[Flow], list[Flow]]]:
    """The simultaneous flows of each operation, before and after the effect."""
    gpus = sorted(device.id for device in snapshot.topology.devices if device.kind == "gpu")
    joined = {link.gpu for link in snapshot.of(GpuLink).values()}
    read = [gpu.nvlinks is not None or gpu.key in joined for gpu in snapshot.of(Gpu).values()]
    if len(gpus) > 1 and len(read) >= len(gpus) and all(read):
        ring = [(a, b) for a, b in zip(gpus, [*gpus[1:], gpus[0]], strict=True)]
        pairs = [(a, b) for a in gpus for b in gpus if a != b]
        for name, ends in (("all_reduce", ring), *([("alltoall", pairs)] if len(gpus) <= _MOST_PAIRS else [])):
            yield name, [Flow("copy", both) for both in ends], [_peer(snapshot, effect, *both) for both in ends]
        yield FABRIC, list(_outwards(snapshot, gpus)), list(_outwards(snapshot, gpus, effect))
    to_host = [Flow("copy", (gpu, "host")) for gpu in gpus]
    yield HOST, to_host, to_host
    disks = [device.id for device in snapshot.topology.devices if device.kind == "nvme"]
    kept = [disk for disk in disks if disk not in effect.lost]
    yield STORAGE, [Flow("read", (disk, "host")) for disk in disks], [Flow("read", (disk, "host")) for disk in kept]


def _outwards(snapshot: Snapshot, gpus: Sequence[str], effect: Effect = _NOTHING) -> Iterator[Flow]:
    """From each GPU to its nearest working ports: as many as the node has for each GPU. GPUs share ports if there are
    fewer.
    """
    nearest = {gpu: nearest_ports(snapshot.topology, gpu) for gpu in gpus}
    each = max(1, len(set().union(*nearest.values())) // max(1, len(gpus)))
    taken: Counter[str] = Counter()
    for gpu in gpus:
        near = nearest_ports(snapshot.topology, gpu, effect.lost)
        for port in sorted(near, key=lambda one: taken[one])[:each]:
            taken[port] += 1
            around = "nic" in effect.by_host or _detours(snapshot, effect, gpu, port)
            yield Flow("write", (gpu, port), via="host" if around else "")


def _peer(snapshot: Snapshot, effect: Effect, a: str, b: str) -> Flow:
    """A copy between two GPUs, through host memory if the effect requires it."""
    return Flow("copy", (a, b), via="host" if "gpu" in effect.by_host or _detours(snapshot, effect, a, b) else "")


def _detours(snapshot: Snapshot, effect: Effect, a: str, b: str) -> bool:
    """Whether a direct path below a switch now leads through the root complex. NVLinks are not affected."""
    if not effect.detours or not (ALL in effect.detours or {a, b} <= effect.detours):
        return False
    found = paths(snapshot.topology, a, [b]).get(b)
    return found is not None and found.type in _BESIDE_SWITCH


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
