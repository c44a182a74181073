"""Each fault of each value of a node: counters, GPU states, memory, processors, disks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.accuracy.conditions import host_cases
from bench.accuracy.edits import lowered, measured, names_of, set_fields, together
from bench.accuracy.faults import Case, Cases
from bench.accuracy.healthy_nodes import HealthyNode
from linkgauge.models.facts.counters import ERRORS
from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.machine import Net, Node, Pci, Port
from linkgauge.models.facts.records import Observation

_HOUR, _DAY = 3600.0, 86400.0
_MIB = 1 << 20
# Counters of errors and of lost time beside ERRORS: the steps in an hour that an operator must learn of.
_PER_HOUR: Mapping[str, float] = {
    "aer_nonfatal": 2,
    "aer_fatal": 1,
    "ecc_uncorrected": 2,
    "ue_count": 1,
    "nvlink_recovery": 20,
    "nvlink_recovery_failed": 1,
    "link_downed": 5,
    "link_error_recovery": 20,
    "carrier_changes": 10,
    "ecc_corrected": 800,  # 20,000 in a day
    "ce_count": 800,
    "throttle_time": 600,  # seconds
    "clocks_hw_thermal": 600,
    "clocks_sw_thermal": 600,
    "clocks_hw_power_brake": 600,
    "out_of_buffer": 1e6,
    "rnr_nak_retry_err": 1e5,
    "port_xmit_discards": 1e5,
    "rx_drops": 1e6,
}
_ANY_ERROR = 10_000.0
_CODES: Sequence[tuple[tuple[str, ...], frozenset[str]]] = (
    (("aer_", "pcie_"), frozenset({"pcie-errors"})),
    (("nvlink_",), frozenset({"nvlink-errors"})),
    (("ecc_",), frozenset({"gpu-ecc"})),
    (("clocks_",), frozenset({"gpu-throttled", "gpu-clocks-limited"})),
    (("throttle_time",), frozenset({"cpu-throttled"})),
    (("ce_count", "ue_count"), frozenset({"host-memory-errors"})),
    (("link_downed", "carrier_changes", "link_error"), frozenset({"nic-port-flapping", "nic-errors"})),
    (("",), frozenset({"nic-errors", "nic-congestion"})),
)


def counter_cases(node: HealthyNode) -> Cases:
    """Each counter of each device: a high count since boot, and the same rate in the last hour."""
    facts = node.snapshot.of(Node)["node"]
    up = (node.now - facts.booted) / _HOUR if facts.booted else 24.0
    wanted = ERRORS | _PER_HOUR.keys()
    for one in node.snapshot.observations:
        if not isinstance(one.about, str) or one.quantity not in wanted:
            continue
        steps = _PER_HOUR.get(one.quantity, _ANY_ERROR)
        codes = next(codes for begins, codes in _CODES if one.quantity.startswith(begins))
        names = names_at(node, one.about)
        words = (one.quantity, "counter")
        for option, more in (("since boot", steps * up), ("in an hour", steps)):
            if option == "since boot" and not facts.booted:
                continue  # the count may be of years
            past = (_before(one, node.now - _HOUR),) if option == "in an hour" else ()
            edit = measured(one.about, one.quantity, one.value + more, node.now, one.unit, one.busy)
            yield Case(f"counter {one.quantity} {option}", one.about, edit, codes, names, words, option, past)


def _before(one: Observation, at: float) -> Observation:
    return Observation(
        about=one.about, quantity=one.quantity, unit=one.unit, value=one.value, at=at, evidence=one.evidence
    )


def names_at(node: HealthyNode, about: str) -> frozenset[str]:
    """All names of the counted device, and the port above it."""
    gpu = node.snapshot.of(Gpu).get(about)
    places = (about, about.partition("/")[0], *([gpu.address] if gpu and gpu.address else []))
    names = {name for place in places for name in names_of(node.snapshot, place)}
    device = node.snapshot.topology.find(about.partition("/")[0])
    function = node.snapshot.of(Pci).get(device.id) if device else None
    above = {function.key, function.parent} if function else set()
    ports = {name for key in (device.aliases if device else ()) for name in (key, f"{key}/1")}
    ports |= {port.key for port in node.snapshot.of(Port).values() if port.netdev == about}
    ports |= {net.key for net in node.snapshot.of(Net).values() if function and net.address == function.key}
    return frozenset(name for name in names | above | ports if name)


# Fields of a GPU with a value that is too low or wrong: the codes, and the words for the value in coverage.
_CLOCKS = frozenset({"gpu-clocks-limited", "gpu-throttled"})
_GPU: Mapping[str, tuple[Callable[[Gpu], Mapping[str, Any]], frozenset[str], tuple[str, ...]]] = {
    "power limit at 60 %": (
        lambda gpu: {"power_limit": 0.6 * (gpu.power_limit_default or gpu.power_limit or 0)},
        _CLOCKS,
        ("power",),
    ),
    "power limit and default at 60 %": (
        lambda gpu: {
            "power_limit": 0.6 * (gpu.power_limit or 0),
            "power_limit_default": 0.6 * (gpu.power_limit_default or 0),
        },
        _CLOCKS,
        ("power",),
    ),
    "busy at 20 % of its clock": (
        lambda gpu: (
            {"clock": 0.2 * gpu.clock_max, "performance_state": 0, "clock_reasons": ()}
            if gpu.clock and gpu.clock_max
            else {}
        ),
        _CLOCKS,
        ("clock",),
    ),
    "highest clock halved": (
        lambda gpu: {"clock_max": 0.5 * (gpu.clock_max or 0), "clock": min(gpu.clock or 0, 0.5 * (gpu.clock_max or 0))},
        _CLOCKS,
        ("clock",),
    ),
    "memory clock halved": (
        lambda gpu: (
            {"memory_clock_max": 0.5 * (gpu.memory_clock_max or 0), "memory_clock": 0.5 * gpu.memory_clock}
            if gpu.memory_clock
            else {}
        ),
        _CLOCKS,
        ("clock",),
    ),
    "application clock at 30 %": (
        lambda gpu: {"application_clock": 0.3 * (gpu.clock_max or 0)},
        _CLOCKS,
        ("clock",),
    ),
    "memory at 80 %": (
        lambda gpu: {"memory": int(0.8 * (gpu.memory or 0))},
        frozenset({"gpu-memory-low", "gpu-mode", "gpu-ecc", "gpu-row-remap", "gpu-missing"}),
        ("memory",),
    ),
    "BAR1 of 256 MiB": (lambda gpu: {"bar1": 256 * _MIB}, frozenset({"pcie-bar1-small"}), ("bar",)),
    "ECC off": (lambda gpu: {"ecc": False} if gpu.ecc else {}, frozenset({"gpu-mode", "gpu-ecc"}), ("ecc",)),
    "uncorrected errors": (lambda gpu: {"ecc_uncorrected": 5}, frozenset({"gpu-ecc"}), ("ecc",)),
    "corrected errors": (lambda gpu: {"ecc_corrected": 20_000}, frozenset({"gpu-ecc"}), ("ecc",)),
    "NVLink rate halved": (
        lambda gpu: {"nvlink_rate": (gpu.nvlink_rate or 0) / 2} if gpu.nvlinks and not gpu.mig else {},
        frozenset({"nvlink-slow", "nvlink-inactive", "nvlink-fabric-incomplete"}),
        ("nvlink", "rate", "speed"),
    ),
    "C2C links halved": (
        lambda gpu: {"c2c_links": gpu.c2c_links // 2} if gpu.c2c_links else {},
        frozenset({"nvlink-inactive"}),
        ("c2c", "link"),
    ),
    "compute mode prohibited": (
        lambda gpu: {"compute_mode": "prohibited"},
        frozenset({"gpu-mode"}),
        ("compute",),
    ),
    "lost for the driver": (
        lambda gpu: {"failure": "GPU is lost", "failure_reason": "lost"},
        frozenset({"gpu-missing", "gpu-driver-failed"}),
        ("gpu",),
    ),
}


def gpu_cases(node: HealthyNode) -> Cases:
    """Each value of each GPU that its driver reports."""
    for gpu in node.snapshot.of(Gpu).values():
        names = frozenset({gpu.key, *(names_of(node.snapshot, gpu.address) if gpu.address else ())})
        for what, (changed, codes, words) in _GPU.items():
            values = dict(changed(gpu))
            fault = values.pop("failure", None)
            values.pop("failure_reason", None)
            edits = lowered(
                Gpu, gpu, **{name: value for name, value in values.items() if value or value in (False, ())}
            )
            edits += [set_fields(Gpu, gpu.key, failure=fault)] if fault else []
            if what.startswith("BAR1") and gpu.address in node.snapshot.of(Pci):
                edits += lowered(Pci, node.snapshot.of(Pci)[str(gpu.address)], bar1=256 * _MIB)
                edits = edits if (gpu.bar1 or 0) > 256 * _MIB else []
            if what.startswith("busy"):
                edits += [measured(gpu.key, "processes", 1, node.now)] if edits else []
            counted = node.snapshot.observed.get(gpu.key, ())
            edits += [
                measured(gpu.key, one.quantity, values[one.quantity], node.now)
                for one in counted
                if one.quantity.startswith("ecc_") and one.quantity in values
            ]
            if edits and not (what == "corrected errors" and node.origin == "dumps"):  # the count may be of years
                yield Case(f"GPU: {what}", gpu.key, together(*edits), codes, names, words)
    for pair in node.snapshot.of(GpuPair).values():
        for field in ("read", "write", "nvlink"):
            if getattr(pair, field) == "ok":
                ends = frozenset({pair.key, pair.a or "", pair.b or ""})
                edit = set_fields(GpuPair, pair.key, **{field: "chipset not supported"})
                codes = frozenset({"p2p-disabled", "nvlink-inactive"})
                yield Case(f"GPU pair without peer {field}", pair.key, edit, codes, ends, ("peer", field))


SOURCES: Sequence[Callable[[HealthyNode], Cases]] = (counter_cases, gpu_cases, host_cases)
