"""The findings of a report as health events, and the events to send after a change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...models.catalog import codes
from ...models.diagnosis.headlines import about
from ...models.graph.topology import Device, Topology
from ...models.report import SEVERITIES, Finding, Report
from ...models.site.gate import Gate, why_open

Action: TypeAlias = Literal[
    "NONE", "COMPONENT_RESET", "CONTACT_SUPPORT", "RUN_FIELDDIAG", "RESTART_VM", "RESTART_BM", "UNKNOWN"
]
Entity: TypeAlias = tuple[str, str]  # type and value: ("PCI", "0000:1e:00.0")

# The first step of a repair -> the action that comes nearest. The first pattern that matches decides.
_ACTIONS: tuple[tuple[re.Pattern[str], Action], ...] = (
    (re.compile(r"^nothing\b"), "NONE"),
    (re.compile(r"\breset\b"), "COMPONENT_RESET"),
    (re.compile(r"\bstop and start the machine\b"), "RESTART_VM"),
    (re.compile(r"\b(?:power-cycle|reboot)\b"), "RESTART_BM"),
    (re.compile(r"\bfield diagnostics\b"), "RUN_FIELDDIAG"),
    (re.compile(r"\b(?:replace|reseat|operator of the host|check the switch|clean)\b"), "CONTACT_SUPPORT"),
)
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CLASSES = {"gpu": "GPU", "nic": "NIC", "port": "NIC", "netdev": "NIC", "nvswitch": "NVSwitch"}
_LONGEST = 1000  # characters of a message


class HealthEvent(Struct, frozen=True, kw_only=True):
    """One fault, or the end of one. Receivers know duplicates by check, entities and code."""

    code: str
    component: str  # "GPU", "NIC", "NVSwitch", "Node"
    entities: tuple[Entity, ...] = ()
    healthy: bool = False
    fatal: bool = False
    remediate: bool = False  # the receiver may cordon and drain the node
    action: Action = "UNKNOWN"
    message: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def check(self) -> str:
        """The name of the check: "LinkgaugePcieLinkNarrow"."""
        return "Linkgauge" + "".join(word.capitalize() for word in self.code.split("-"))

    @property
    def key(self) -> str:
        """What the receiver knows duplicates by."""
        return " ".join((self.code, *(f"{kind}={value}" for kind, value in self.entities)))


def health_events(report: Report, gate: Gate) -> Mapping[str, HealthEvent]:
    """The faults of the report by key. Of several findings with one key, the most severe."""
    events: dict[str, HealthEvent] = {}
    for one in sorted(report.findings, key=lambda one: SEVERITIES.index(one.severity)):
        if one.silenced is None and one.severity != "info":
            event = _event(report.topology, one, gate)
            events.setdefault(event.key, event)
    return events


def changes(before: Mapping[str, HealthEvent], now: Mapping[str, HealthEvent]) -> Iterator[HealthEvent]:
    """The events that turn what the receiver knows into the present faults: new, changed, and ended ones."""
    for key, event in now.items():
        if key not in before or _state(before[key]) != _state(event):
            yield event
    for key, event in before.items():
        if key not in now:
            yield recovered(event)


def recovered(event: HealthEvent) -> HealthEvent:
    """The end of a fault."""
    text = "the finding is gone, or is silenced"
    return replace(event, healthy=True, fatal=False, action="NONE", message=text, metadata={})


def _state(event: HealthEvent) -> tuple[bool, bool, Action]:
    """What a receiver acts on. Numbers in the message and in the metadata change without a change of the fault."""
    return event.fatal, event.remediate, event.action


def _event(topology: Topology, finding: Finding, gate: Gate) -> HealthEvent:
    text = about(finding.device or finding.subject, finding.fact or finding.message)
    stale = f"; not evaluated again: {finding.stale}" if finding.stale else ""
    known = {
        "severity": finding.severity,
        "confidence": finding.confidence,
        "expected": finding.expected,
        "observed": finding.observed,
        "unit": finding.unit,
        "first_step": finding.first_step,
        "since": finding.since,
    }
    return HealthEvent(
        code=finding.code,
        component=_component(topology, finding.subject),
        entities=tuple(entities(topology, finding.subject)),
        fatal=is_fatal(finding),
        remediate=gate.remediate and why_open(finding, gate) is None,
        action=action_of(finding.first_step or ""),
        message=f"{text}; {finding.message}{stale}"[:_LONGEST],
        metadata={name: str(value) for name, value in known.items() if value is not None},
    )


def is_fatal(finding: Finding) -> bool:
    """Critical, certain, and a fault of the node instead of a job."""
    of_job = finding.code in codes() and codes()[finding.code].of_job
    return finding.severity == "critical" and finding.confidence == "certain" and not of_job


def action_of(first_step: str) -> Action:
    """The action that comes nearest to the first step of a repair."""
    return next((action for pattern, action in _ACTIONS if pattern.search(first_step)), "UNKNOWN")


def entities(topology: Topology, subject: str) -> Iterator[Entity]:
    """The devices of a subject, each by all names that other monitors use. None for the node."""
    if subject == "node":
        return
    device = topology.find(subject)
    names = (subject,) if device or "/" in subject else subject.split("-")
    for name in names:
        yield from _named(topology, name)


def _named(topology: Topology, name: str) -> Iterator[Entity]:
    base, _, part = name.partition("/")
    device = topology.find(base) or topology.find(name)
    address = device.id if device else base
    if _ADDRESS.fullmatch(address):
        yield "PCI", address
    if device and device.kind == "gpu":
        yield from _gpu(device)
    elif part.isdecimal() or (device and device.kind == "nic"):
        yield "NIC", base if part else next(iter(device.aliases), base) if device else base
    elif not _ADDRESS.fullmatch(address):
        yield "DEVICE", name
    if part.startswith("nvlink"):
        yield "NVLINK", part.removeprefix("nvlink")
    elif part.isdecimal():
        yield "NICPort", part


def _gpu(device: Device) -> Iterator[Entity]:
    number = next(iter(device.aliases), "").removeprefix("gpu")
    if number.isdecimal():
        yield "GPU", number
    if device.uuid:
        yield "GPU_UUID", device.uuid


def _component(topology: Topology, subject: str) -> str:
    device = topology.find(subject) or topology.find(subject.partition("/")[0]) or topology.find(subject.split("-")[0])
    return _CLASSES.get(device.kind, "Node") if device else "Node"
