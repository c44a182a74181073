"""The report, which is the only input of exporters. Its JSON form is the contract `linkgauge.report/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from .facts.records import Evidence, Flow, NotChecked, Run
from .graph.topology import Topology

Basis: TypeAlias = Literal["site", "profile", "capability", "kin", "baseline"]  # three are absolute; most trusted first
Severity: TypeAlias = Literal["critical", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")  # most severe first
ABSOLUTE: frozenset[Basis] = frozenset({"site", "profile", "capability"})
Verdict: TypeAlias = Literal["ok", "degraded", "failed", "unknown"]
# state: true now. event: happened, and stays in reports until it is cleared. measurement: a measured rate is too low.
FindingKind: TypeAlias = Literal["state", "event", "measurement"]
Origin: TypeAlias = Literal["live", "capture", "dumps"]
Context: TypeAlias = Literal["host", "job", "dumps"]
# Independent evidence of what a value should be, most trusted first: site file, machine type, product, equal devices,
# the past of this node (acceptance or an earlier boot), a measured rate.
Corroboration: TypeAlias = Literal["site", "profile", "product", "cohort", "baseline", "load"]
CoverageGroup: TypeAlias = Literal["links", "counts", "states"]

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
    """Rates of one flow in bytes per second: rated and trained rate of its tightest link, expected rates, observed
    rate.
    """

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
        """The flow that this level describes."""
        return Flow(self.op, self.ends, self.size, self.via, self.beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference between the expected and the observed state: subject, both numbers, likely cause, next step."""

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
    limits: Mapping[str, float] = field(default_factory=dict)  # link -> rate it has left: for attribution, impact
    explains: tuple[str, ...] = ()  # "bandwidth-low:gpu3-numa0"
    impact: Mapping[str, float] = field(default_factory=dict)  # operation -> how many times slower
    location: Mapping[str, str | int | None] = field(default_factory=dict)  # slot, label: for a technician
    since: str | None = None
    silenced: str | None = None  # the operator's reason to ignore the finding
    stale: str | None = None  # why it could not be evaluated again; null if it is true at the time of the report
    evidence: tuple[Evidence, ...] = ()
    remedy: str | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One observation in the report: a number at a point in time."""

    about: str
    quantity: str
    unit: str
    value: float
    at: str
    busy: bool | None = None


@dataclass(frozen=True, slots=True)
class Uncorroborated:
    """A device, link or count whose values have no independent evidence. They may be wrong without a finding."""

    subject: str
    group: CoverageGroup
    quantities: tuple[str, ...]  # "link width"
    why: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well the verdict is supported: the number of things by their weakest evidence, and those without any."""

    corroborated: Mapping[CoverageGroup, Mapping[Corroboration, int]] = field(default_factory=dict)
    uncorroborated: tuple[Uncorroborated, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """Factors by which something takes longer: with full overlap of messages and compute, with usual overlap, with
    none.
    """

    least: float
    usual: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Cost of the findings for the job of the site file. One of its nodes has the findings, the others none."""

    job: str
    gpus: int
    step_seconds: float  # without the findings
    slower: Range
    gpu_hours_a_day: float  # lost
    critical_tokens: float | None = None  # tokens per GPU and step, below which gradients limit; without findings
    critical_tokens_now: float | None = None
    load_seconds: float | None = None  # to load a checkpoint from this node's disks, if their rate was measured
    load_seconds_now: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The machine type and how it was recognised."""

    name: str
    matched_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The evaluation of one node at one time."""

    schema: Literal["linkgauge.report/1"] = SCHEMA
    node: str | None
    taken_at: str | None
    source: Origin
    context: Context
    profile: Profile | None
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    checks: Mapping[str, bool] = field(default_factory=dict)  # code -> checked; false: a wanted check was not possible
    coverage: Coverage = Coverage()
    impact: Mapping[str, float] = field(default_factory=dict)  # as in Finding, for all findings together
    training: Training | None = None  # if the site file describes a job
    levels: tuple[Level, ...] = ()
    observations: tuple[Seen, ...] = ()
    topology: Topology = Topology()
    runs: tuple[Run, ...] = ()
