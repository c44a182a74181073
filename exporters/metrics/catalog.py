"""The metrics: what each is called, what it counts, in which unit, with which labels, and how many series it makes.

One table: exporters and docs/generate.py (docs/reference/metrics.md) read it. Names are final: they
are added, and never renamed. Joins work because labels are spelt as others spell them: `pci_bus_id`, `UUID` and `gpu`
as dcgm-exporter has them, `device` and `port` as node_exporter's infiniband collector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["gauge", "counter", "info"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A family of series."""

    name: str  # as it is queried, with "_total" and "_info"
    kind: Kind
    labels: tuple[str, ...]
    series: str  # how many, in words
    text: str

    @property
    def unit(self) -> str:
        """Its base unit; "" for plain numbers."""
        plain = self.name.removesuffix("_total")
        return next((unit for unit in _UNITS if plain.endswith(f"_{unit}")), "")


_UNITS = ("bytes_per_second", "bytes", "seconds", "ratio")
LINK = ("subject", "kind", "via")
DEVICE = (
    "subject",
    "class",
    "name",
    "gpu",
    "UUID",
    "pci_bus_id",
    "device",
    "port",
    "slot",
    "module_id",
    "numa_node",
    "firmware",
)
_DETAIL = "1 per device, port and measured flow; 2 for more than 16 equal flows"

_ALL = (
    Metric("linkgauge_build_info", "info", ("version", "python"), "1", "The program that answers."),
    Metric(
        "linkgauge_node_info",
        "info",
        ("node", "profile", "*"),
        "1",
        "The node, the machine type that it was recognised as, and the labels of the site file.",
    ),
    Metric(
        "linkgauge_verdict",
        "gauge",
        ("verdict",),
        "4",
        "1 for the verdict on the node, 0 for the others: ok, degraded, failed, unknown.",
    ),
    Metric(
        "linkgauge_finding",
        "gauge",
        ("code", "subject"),
        "1 per finding",
        "1 for each finding that counts; what is healthy has none. linkgauge_check says whether it was looked for.",
    ),
    Metric(
        "linkgauge_finding_severity",
        "gauge",
        ("code", "subject"),
        "1 per finding",
        "How grave the finding is: 1 info, 2 warning, 3 critical.",
    ),
    Metric(
        "linkgauge_finding_silenced",
        "gauge",
        ("code", "subject"),
        "1 per silenced finding",
        "1 for each finding that does not count because the operator said so.",
    ),
    Metric(
        "linkgauge_impact_slowdown_ratio",
        "gauge",
        ("collective", "scope"),
        "3 while a finding has a cost",
        "How many times as long collectives take with all findings, in the node or over the fabric; a job's step.",
    ),
    Metric(
        "linkgauge_gate_would_drain",
        "gauge",
        ("code", "subject"),
        "1 per finding that closes the gate",
        "1 for each finding for which jobs are kept away from the node, or would be if the site file enforced it.",
    ),
    Metric(
        "linkgauge_check",
        "gauge",
        ("code",),
        "1 per code that applies to this node",
        "1 where it was judged, 0 where it was wanted and could not be judged everywhere.",
    ),
    Metric(
        "linkgauge_not_checked",
        "gauge",
        ("check", "reason"),
        "1 per check and reason; none on a healthy node",
        "How many things should have been read and were not, by what was to be read and why not.",
    ),
    Metric(
        "linkgauge_device_info",
        "info",
        DEVICE,
        '1 per device; with detail = "links" also bridges',
        "What each subject is, in the words of other exporters.",
    ),
    Metric(
        "linkgauge_link_rated_bytes_per_second",
        "gauge",
        LINK,
        _DETAIL,
        "What both ends of the link can do, in one direction.",
    ),
    Metric(
        "linkgauge_link_trained_bytes_per_second",
        "gauge",
        LINK,
        _DETAIL,
        "What the link runs at now, in one direction: less at rest; 0 of an NVLink that is down, none of a port.",
    ),
    Metric(
        "linkgauge_link_expected_bytes_per_second",
        "gauge",
        LINK,
        "1 per measured flow",
        "What the flow should typically reach, in one direction.",
    ),
    Metric(
        "linkgauge_link_observed_bytes_per_second",
        "gauge",
        LINK,
        "1 per measured flow",
        "What was measured, or seen while jobs sent, in one direction.",
    ),
    Metric("linkgauge_link_attained_ratio", "gauge", LINK, "1 per measured flow", "Observed divided by expected."),
    Metric(
        "linkgauge_observation_timestamp_seconds",
        "gauge",
        LINK,
        "1 per measured flow",
        "When the rate was observed, in seconds since 1970.",
    ),
    Metric(
        "linkgauge_link_traffic_bytes_total",
        "counter",
        ("subject", "direction"),
        "2 per port and network device",
        "Bytes that went over the link: direction receive or transmit.",
    ),
    Metric(
        "linkgauge_link_errors_total",
        "counter",
        ("subject", "kind"),
        "3 per PCIe device, 4 per GPU, about 15 per port, 4 per network device",
        "Errors that the ends of the link counted, by the name that the kernel or the driver has for them.",
    ),
    Metric(
        "linkgauge_nvlink_links",
        "gauge",
        ("subject", "state"),
        "2 per GPU with NVLinks",
        "NVLinks of the GPU that are active and inactive.",
    ),
    Metric(
        "linkgauge_probe_success",
        "gauge",
        ("probe",),
        "1 per source",
        "1 where the source was asked without a fault in linkgauge itself.",
    ),
    Metric(
        "linkgauge_probe_duration_seconds",
        "gauge",
        ("probe",),
        "1 per source",
        "How long the source took when it was asked last.",
    ),
    Metric(
        "linkgauge_probe_timestamp_seconds",
        "gauge",
        ("probe",),
        "1 per source",
        "When the source was asked last, in seconds since 1970.",
    ),
    Metric(
        "linkgauge_probe_bytes_total",
        "counter",
        ("probe",),
        "1 per source that moves bytes",
        "Bytes that the source moved to measure.",
    ),
    Metric(
        "linkgauge_cycle_timestamp_seconds",
        "gauge",
        (),
        "1",
        "When this was found out, in seconds since 1970: it stands still when the program does.",
    ),
    Metric("linkgauge_cycle_duration_seconds", "gauge", (), "1", "How long the last cycle took."),
    Metric(
        "linkgauge_stuck_children",
        "gauge",
        (),
        "1",
        "Children and threads that hang in a driver or in a file of the kernel, and cannot be ended.",
    ),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
