"""Devices under the names of OpenTelemetry's hardware conventions (hw.*, in development).

https://opentelemetry.io/docs/specs/semconv/hardware/. They have nothing for PCIe and NVLink, so these stay under our
own names. hw.state has no value for "unknown": a device that was not read completely has no hw.status.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from ...models.facts.counters import ERRORS, TRAFFIC
from ...models.facts.units import from_utc
from ...models.graph.topology import Device, Topology
from ...models.report import Finding, Report
from .device_info import subject_of
from .sample import CycleInfo

State: TypeAlias = Literal["ok", "degraded", "failed"]
STATES: tuple[State, ...] = ("ok", "degraded", "failed")
# Kind of a device -> hw.type. A NIC is the ports that it has.
_TYPES: Mapping[str, str] = {
    "gpu": "gpu",
    "port": "network",
    "netdev": "network",
    "nvme": "disk_controller",
    "disk": "physical_disk",
    "array": "logical_disk",
    "package": "cpu",
}
_LOOPBACK = "lo"


class HwMetric(NamedTuple):
    """A metric of the conventions."""

    monotonic: bool  # a counter; else an UpDownCounter
    unit: str  # UCUM
    text: str


METRICS: Mapping[str, HwMetric] = {
    "hw.status": HwMetric(False, "1", "Operational status: 1 (true) or 0 (false) for each of the possible states."),
    "hw.errors": HwMetric(True, "{error}", "Number of errors encountered by the component."),
    "hw.network.bandwidth.limit": HwMetric(False, "By/s", "Link speed."),
    "hw.network.up": HwMetric(False, "1", "Link status: 1 (up) or 0 (down)."),
    "hw.network.io": HwMetric(True, "By", "Received and transmitted network traffic in bytes."),
}


class HwSample(NamedTuple):
    """One value of a metric of METRICS."""

    metric: str
    attributes: Mapping[str, str]
    value: int


def hardware(report: Report, cycle: CycleInfo | None) -> Iterator[HwSample]:
    """The samples of all devices that have a type in the conventions."""
    devices = {one.id: one for one in report.topology.devices if one.kind in _TYPES and one.id != _LOOPBACK}
    for device in devices.values():
        yield from _status(report, device)
        if _TYPES[device.kind] == "network":
            yield from _network(report.topology, device)
    # A device can have several names, but a series has one: the last value is used.
    last = {(subject_of(report.topology, one.about), one.quantity): one for one in report.observations}
    for (subject, quantity), one in last.items():
        found = devices.get(subject)
        if found is None or (cycle is not None and cycle.is_stale(from_utc(one.at), cycle.count_lifetime)):
            continue
        if quantity in ERRORS:
            attributes = {**attributes_of(report.topology, found), "error.type": quantity}
            yield HwSample("hw.errors", attributes, int(one.value))
        elif quantity in TRAFFIC and _TYPES[found.kind] == "network":
            attributes = {**attributes_of(report.topology, found), "network.io.direction": TRAFFIC[quantity]}
            yield HwSample("hw.network.io", attributes, int(one.value))


def attributes_of(topology: Topology, device: Device) -> Mapping[str, str]:
    """The common attributes of a device."""
    parent = topology.find(device.id.rpartition("/")[0]) if device.kind == "port" else None
    known = {
        "hw.id": device.id,
        "hw.name": next(iter(device.aliases), device.id),
        "hw.type": _TYPES[device.kind],
        "hw.model": device.name,
        "hw.parent": parent.id if parent else "",
    }
    return {name: value for name, value in known.items() if value}


def _status(report: Report, device: Device) -> Iterator[HwSample]:
    state = state_of(report, device)
    for one in STATES if state else ():
        yield HwSample("hw.status", {**attributes_of(report.topology, device), "hw.state": one}, int(one == state))


def state_of(report: Report, device: Device) -> State | None:
    """The state of a device; None: it was not read completely, and no finding says that it is at fault."""
    names = {device.id, *device.aliases}
    faults = [one for one in report.findings if _is_fault(one) and names & {one.subject, one.subject.partition("/")[0]}]
    if any(one.severity == "critical" for one in faults):
        return "failed"
    if faults:
        return "degraded"
    unread = any(one.subject in names for one in report.not_checked)
    return None if unread or _is_blind(report) else "ok"


def _is_fault(finding: Finding) -> bool:
    return finding.silenced is None and finding.severity != "info"


def _is_blind(report: Report) -> bool:
    """Whether a check of the whole node was not possible."""
    return report.verdict == "unknown" and not any(map(_is_fault, report.findings))


def _network(topology: Topology, device: Device) -> Iterator[HwSample]:
    links = [link for link in topology.links if device.id in (link.a, link.b) and link.kind == "port"]
    rates = [link.trained for link in links if link.trained is not None]
    if len(rates) == 1:
        attributes = attributes_of(topology, device)
        yield HwSample("hw.network.up", attributes, int(rates[0] > 0))
        if rates[0] > 0:
            yield HwSample("hw.network.bandwidth.limit", attributes, int(rates[0]))


def by_metric(report: Report, cycle: CycleInfo | None) -> Mapping[str, list[HwSample]]:
    """The samples by the name of their metric."""
    found: dict[str, list[HwSample]] = defaultdict(list)
    for one in hardware(report, cycle):
        found[one.metric].append(one)
    return found
