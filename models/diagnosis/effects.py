"""What a finding takes away from the node: link rates, ports, disks, direct paths, computing speed.

The field `cost` of codes.toml says how the cost of a code follows from its finding. A finding whose effect is not known
has an unknown cost, never a cost of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ..catalog import codes
from ..facts.gpu import Gpu
from ..graph.topology import INSIDE, Topology
from ..inventory.snapshot import Snapshot
from ..report import Finding

ALL = "all"  # in Effect.detours: every GPU and NIC
_BELOW = frozenset({"pcie", "internal"}) | INSIDE
_IDLE = "idle"
_HARDWARE = "hardware slowdown"
_HALVED = 2.0  # nvml.h, nvmlClocksEventReasonHwSlowdown: core clocks are reduced by a factor of 2 or more


class Effect(Struct, frozen=True, kw_only=True):
    """What is left of the node. `known` is false if nothing says what the finding takes away."""

    known: bool = True
    stops: bool = False  # no job that uses all GPUs of the node can run
    limits: Mapping[str, float] = field(default_factory=dict)  # link -> bytes per second that are left
    lost: frozenset[str] = frozenset()  # ports and disks of the topology that carry nothing
    absent: frozenset[str] = frozenset()  # kinds of devices that the topology lacks: "port"
    detours: frozenset[str] = frozenset()  # devices whose traffic to other devices goes through the processor
    by_host: frozenset[str] = frozenset()  # "gpu", "nic": traffic of GPUs to these goes through host memory
    compute: float = 1.0  # how many times longer a GPU computes


NOTHING = Effect()
UNKNOWN = Effect(known=False)


def effect_of(snapshot: Snapshot, finding: Finding) -> Effect:
    """The effect of one finding, independent of all others."""
    if finding.limits:
        return Effect(limits=finding.limits)
    if finding.severity == "info":
        return NOTHING
    return _EFFECTS[codes()[finding.code].cost](snapshot, finding)


def _stops(snapshot: Snapshot, finding: Finding) -> Effect:
    """A GPU, the driver or the fabric does not work. Only critical findings say that."""
    return Effect(stops=True) if finding.severity == "critical" else UNKNOWN


def _port(snapshot: Snapshot, finding: Finding) -> Effect:
    """A port that is down or a NIC that is absent. Other ports take over its traffic."""
    topology = snapshot.topology
    device = topology.find(finding.subject)
    if device is not None and device.kind == "port":
        return Effect(lost=frozenset({device.id}))
    ports = _beyond(topology, device.id, "port") if device is not None and device.kind == "nic" else frozenset()
    return Effect(lost=ports) if ports else Effect(absent=frozenset({"port"}))


def _disk(snapshot: Snapshot, finding: Finding) -> Effect:
    device = snapshot.topology.find(finding.subject)
    return Effect(lost=frozenset({device.id})) if device is not None and device.kind == "nvme" else UNKNOWN


def _beyond(topology: Topology, device: str, kind: str) -> frozenset[str]:
    return frozenset(link.b for link in topology.links if link.a == device and link.kind == kind)


def _detour(snapshot: Snapshot, finding: Finding) -> Effect:
    """Direct traffic below a switch goes through the root complex. The subject is the switch, or the node."""
    topology = snapshot.topology
    device = topology.find(finding.subject)
    if device is None:
        return Effect(detours=frozenset({ALL}))
    reached, left = {device.id}, [device.id]
    while left:
        here = left.pop()
        below = [link.b for link in topology.links if link.a == here and link.kind in _BELOW]
        left += [name for name in below if name not in reached]
        reached.update(below)
    return Effect(detours=frozenset(reached))


def _gdr(snapshot: Snapshot, finding: Finding) -> Effect:
    """Without GPUDirect RDMA, each byte between a GPU and a NIC is copied through host memory."""
    return Effect(by_host=frozenset({"nic"}))


def _peers(snapshot: Snapshot, finding: Finding) -> Effect:
    """Without peer access, each byte between two GPUs is copied through host memory."""
    return Effect(by_host=frozenset({"gpu"}))


def _compute(snapshot: Snapshot, finding: Finding) -> Effect:
    """A lower clock. A lower power limit has no known factor: the work decides how much power a clock needs."""
    numbers = finding.expected, finding.observed
    if finding.unit == "hertz" and all(isinstance(one, int | float) and one > 0 for one in numbers):
        return Effect(compute=max(1.0, float(numbers[0] or 0) / float(numbers[1] or 1)))
    gpu = _gpu(snapshot, finding)
    reasons = (gpu.clock_reasons or ()) if gpu else ()
    if gpu is None or finding.code != "gpu-throttled" or not reasons or _IDLE in reasons:
        return UNKNOWN
    if gpu.processes and gpu.clock and gpu.clock_max:  # without a process, the clock is low by itself
        return Effect(compute=max(1.0, gpu.clock_max / gpu.clock))
    return Effect(compute=_HALVED) if _HARDWARE in reasons else UNKNOWN


def _fabric(snapshot: Snapshot, finding: Finding) -> Effect:
    """A GPU that is no member of its fabric cannot start CUDA. A member of a faulty fabric has fewer links."""
    gpu = _gpu(snapshot, finding)
    joined = gpu is not None and gpu.fabric_state == "completed" and gpu.fabric_status in (None, "Success")
    return UNKNOWN if joined else _stops(snapshot, finding)


def _gpu(snapshot: Snapshot, finding: Finding) -> Gpu | None:
    return next((one for one in snapshot.of(Gpu).values() if finding.subject in (one.address, one.key)), None)


def _switches(snapshot: Snapshot, finding: Finding) -> Effect:
    """An absent NVSwitch takes its share of all NVLinks of the GPUs along (HGX boards spread them evenly)."""
    numbers = finding.expected, finding.observed
    if finding.unit != "switches" or not all(isinstance(one, int) and one > 0 for one in numbers):
        return UNKNOWN
    left = float(numbers[1] or 0) / float(numbers[0] or 1)
    links = [one for one in snapshot.topology.links if one.kind == "nvlink" and one.rated]
    return Effect(limits={one.id: (one.rated or 0.0) * left for one in links}) if links else UNKNOWN


def _unknown(snapshot: Snapshot, finding: Finding) -> Effect:
    return UNKNOWN


def _nothing(snapshot: Snapshot, finding: Finding) -> Effect:
    return NOTHING


_EFFECTS: Mapping[str, Callable[[Snapshot, Finding], Effect]] = {
    "links": _unknown,  # without limits, the links that are affected are not known
    "stops": _stops,
    "fabric": _fabric,
    "switches": _switches,
    "port": _port,
    "disk": _disk,
    "detour": _detour,
    "gdr": _gdr,
    "peers": _peers,
    "compute": _compute,
    "none": _nothing,
    "unknown": _unknown,
}
