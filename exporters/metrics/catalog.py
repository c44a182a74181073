"""The catalog of metrics: name, kind, labels, number of series and help text of each.

The exporters and docs/generate.py (docs/reference/metrics.md) read it. Names are final: metrics are added and never
renamed. Labels have the names of other exporters, so that joins work: `pci_bus_id`, `UUID` and `gpu` as in
dcgm-exporter, `device` and `port` as in node_exporter's infiniband collector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["gauge", "counter", "info"]


class Metric(Struct, frozen=True):
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
    Metric("linkgauge_build_info", "info", ("version", "python"), "1", "Version of linkgauge and of Python."),
    Metric(
        "linkgauge_node_info",
        "info",
        ("node", "profile", "*"),
        "1",
        "Name of the node, its machine type, and the labels of the site file.",
    ),
    Metric(
        "linkgauge_verdict",
        "gauge",
        ("verdict",),
        "4",
        "1 for the verdict on the node, 0 for the other verdicts: ok, degraded, failed, unknown.",
    ),
    Metric(
        "linkgauge_finding",
        "gauge",
        ("code", "subject"),
        "1 per finding",
        "1 for each finding that counts. Healthy devices have no series; linkgauge_check shows what was judged.",
    ),
    Metric(
        "linkgauge_finding_severity",
        "gauge",
        ("code", "subject"),
        "1 per finding",
        "Severity of the finding: 1 info, 2 warning, 3 critical.",
    ),
    Metric(
        "linkgauge_finding_silenced",
        "gauge",
        ("code", "subject"),
        "1 per silenced finding",
        "1 for each finding that the site file silences.",
    ),
    Metric(
        "linkgauge_finding_message",
        "gauge",
        ("code", "subject", "device", "message"),
        "1 per finding; a message with a count that rises becomes a new series in each cycle in which it rises",
        "1 for each finding, with the device, its place, both numbers and the first step as text. Alerts print it.",
    ),
    Metric(
        "linkgauge_finding_cost",
        "gauge",
        ("code", "subject", "cost"),
        "1 per finding",
        "1 for each finding, with its cost for jobs: cannot run (no job can use all GPUs), slower (by the factors of "
        "linkgauge_impact_slowdown_ratio), none, or unknown.",
    ),
    Metric(
        "linkgauge_finding_stale",
        "gauge",
        ("code", "subject"),
        "1 per stale finding",
        "1 for each finding that could not be evaluated again: after a restart, or because a source does not answer.",
    ),
    Metric(
        "linkgauge_finding_timestamp_seconds",
        "gauge",
        ("code", "subject"),
        "1 per finding of a service",
        "Time at which the finding appeared first, in seconds since 1970.",
    ),
    Metric(
        "linkgauge_impact_slowdown_ratio",
        "gauge",
        ("collective", "scope"),
        "3 to 6 while a finding has a known cost",
        "How many times longer collectives (in the node, over the fabric), copies to the host, reads of disks, "
        "computing or the step of a job take with all findings of known cost. +Inf: the job cannot run. Absent: not "
        "known.",
    ),
    Metric(
        "linkgauge_gate_would_drain",
        "gauge",
        ("code", "subject"),
        "1 per finding that closes the gate",
        "1 for each finding that closes the gate for jobs, or would close it if the site file enforced the gate.",
    ),
    Metric(
        "linkgauge_check",
        "gauge",
        ("code",),
        "1 per code that applies to this node",
        "1 if all devices were judged, 0 if some devices could not be judged.",
    ),
    Metric(
        "linkgauge_not_checked",
        "gauge",
        ("check", "reason"),
        "1 per check and reason; none on a healthy node",
        "Number of values that linkgauge should have read and could not read, by check and reason.",
    ),
    Metric(
        "linkgauge_corroborated",
        "gauge",
        ("group", "by"),
        "about 10",
        "Number of links, counts or states of the node that independent evidence supports, by their weakest evidence; "
        "by is none for those without independent evidence.",
    ),
    Metric(
        "linkgauge_device_info",
        "info",
        DEVICE,
        '1 per device; with detail = "links" also bridges',
        "Each subject with the labels of other exporters.",
    ),
    Metric(
        "linkgauge_link_rated_bytes_per_second",
        "gauge",
        LINK,
        _DETAIL,
        "Rate that both ends of the link support, in one direction.",
    ),
    Metric(
        "linkgauge_link_trained_bytes_per_second",
        "gauge",
        LINK,
        _DETAIL,
        "Rate at which the link runs now, in one direction: lower at rest; 0 for an NVLink that is down.",
    ),
    Metric(
        "linkgauge_link_expected_bytes_per_second",
        "gauge",
        LINK,
        "1 per measured flow",
        "Typical rate that is expected of the flow, in one direction.",
    ),
    Metric(
        "linkgauge_link_observed_bytes_per_second",
        "gauge",
        LINK,
        "1 per measured flow",
        "Rate that was measured, or observed while a job ran, in one direction.",
    ),
    Metric(
        "linkgauge_link_attained_ratio", "gauge", LINK, "1 per measured flow", "Observed rate divided by expected rate."
    ),
    Metric(
        "linkgauge_observation_timestamp_seconds",
        "gauge",
        LINK,
        "1 per measured flow",
        "Time of the observed rate, in seconds since 1970.",
    ),
    Metric(
        "linkgauge_link_traffic_bytes_total",
        "counter",
        ("subject", "direction"),
        "2 per port and network device",
        "Bytes that passed the link; direction is receive or transmit.",
    ),
    Metric(
        "linkgauge_link_errors_total",
        "counter",
        ("subject", "link", "kind"),
        "3 per PCIe device, 4 per GPU, about 15 per port, 4 per network device, at most 16 NVLinks per kind",
        "Errors that the ends of the link counted; kind is the counter name of the kernel or driver. A GPU also has "
        "series of its NVLinks with most errors; link is the number of the NVLink.",
    ),
    Metric(
        "linkgauge_nvlink_links",
        "gauge",
        ("subject", "state"),
        "2 per GPU with NVLinks",
        "Number of active and inactive NVLinks of the GPU.",
    ),
    Metric(
        "linkgauge_probe_success",
        "gauge",
        ("probe",),
        "1 per source",
        "1 if the source ran without a bug in linkgauge.",
    ),
    Metric(
        "linkgauge_probe_duration_seconds",
        "gauge",
        ("probe",),
        "1 per source",
        "Duration of the last run of the source.",
    ),
    Metric(
        "linkgauge_probe_timestamp_seconds",
        "gauge",
        ("probe",),
        "1 per source",
        "Time of the last run of the source, in seconds since 1970.",
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
        "Time of the last completed cycle, in seconds since 1970.",
    ),
    Metric("linkgauge_cycle_duration_seconds", "gauge", (), "1", "Duration of the last cycle."),
    Metric(
        "linkgauge_stuck_children",
        "gauge",
        (),
        "1",
        "Number of child processes and threads that hang in a driver or kernel file and cannot be ended.",
    ),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
