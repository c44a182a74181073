"""The report: the only thing that exporters see. Its JSON form is the contract `linkgauge.report/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from .facts.records import Evidence, Flow, NotChecked, Run
from .graph.topology import Topology

Basis: TypeAlias = Literal["site", "profile", "capability", "kin", "baseline"]  # three absolute, in the order of trust
Severity: TypeAlias = Literal["critical", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")  # the gravest first
ABSOLUTE: frozenset[Basis] = frozenset({"site", "profile", "capability"})
Verdict: TypeAlias = Literal["ok", "degraded", "failed", "unknown"]
# What holds now; what happened, which is told until what clears it has happened; what was measured slow.
FindingKind: TypeAlias = Literal["state", "event", "measurement"]
Origin: TypeAlias = Literal["live", "capture", "dumps"]
Context: TypeAlias = Literal["host", "job", "dumps"]

SCHEMA: Literal["linkgauge.report/1"] = "linkgauge.report/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one basis expects of a flow, in bytes per second; `bottleneck` is the id of the tightest link."""

    basis: Basis
    low: float
    typical: float
    high: float
    bottleneck: str | None = None
    source: str


class Level(msgspec.Struct, frozen=True, kw_only=True, rename={"link_class": "class"}):
    """One flow in bytes per second: what its tightest link is rated and trained at, what is expected, and seen."""

    op: str
    ends: tuple[str, ...]
    via: str = ""
    size: int | None = None  # bytes
    beside: tuple[tuple[str, ...], ...] = ()
    link_class: str = ""  # "pcie5x16": flows of one class are comparable between nodes
    rated: float | None = None
    trained: float | None = None
    expected: tuple[Expectation, ...] = ()
    observed: float | None = None
    observed_at: str | None = None

    @property
    def flow(self) -> Flow:
        """The flow that the row is about."""
        return Flow(self.op, self.ends, self.size, self.via, self.beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that differs from what should be. It names the thing, both numbers, the likely cause, the next step."""

    code: str
    kind: FindingKind = "state"
    severity: Severity
    confidence: Literal["certain", "likely", "possible"] = "certain"
    subject: str
    subject_name: str | None = None
    message: str
    expected: int | float | str | None = None
    observed: int | float | str | None = None
    unit: str | None = None
    basis: Basis | None = None
    expected_source: str | None = None
    cause: str | None = None
    limits: Mapping[str, float] = field(default_factory=dict)  # link -> rate it has left: explains flows, gives impact
    explains: tuple[str, ...] = ()  # "bandwidth-low:gpu3-numa0"
    impact: Mapping[str, float] = field(default_factory=dict)  # operation -> how many times slower
    location: Mapping[str, str | int | None] = field(default_factory=dict)  # slot, label: what a technician needs
    since: str | None = None
    silenced: str | None = None  # the operator's reason
    evidence: tuple[Evidence, ...] = ()
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A row of the observations: a number that held at a moment."""

    about: str
    quantity: str
    unit: str
    value: float
    at: str
    busy: bool | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """How many times as long something takes: with all overlap that is possible, as is usual, with none."""

    least: float
    usual: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What the findings cost the job that was described, over nodes like this one of which one is as this one is."""

    job: str
    gpus: int
    step_seconds: float  # without the findings
    slower: Range
    gpu_hours_a_day: float  # lost
    critical_tokens: float | None = None  # a GPU in a step, below which it waits for gradients; without the findings
    critical_tokens_now: float | None = None
    load_seconds: float | None = None  # of a checkpoint from this node's disks, where these were measured
    load_seconds_now: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The machine type, and how it was recognised."""

    name: str
    matched_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that is said about a node at one time."""

    schema: Literal["linkgauge.report/1"] = SCHEMA
    node: str | None
    taken_at: str | None
    source: Origin
    context: Context
    profile: Profile | None
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    checks: Mapping[str, bool] = field(default_factory=dict)  # code -> judged; false: wanted and could not be judged
    impact: Mapping[str, float] = field(default_factory=dict)  # as of a finding, of all findings together
    training: Training | None = None  # where a job was described
    levels: tuple[Level, ...] = ()
    observations: tuple[Seen, ...] = ()
    topology: Topology = Topology()
    runs: tuple[Run, ...] = ()
