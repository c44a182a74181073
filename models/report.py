"""The report, which is the only input of exporters. Its JSON form is the contract `linkgauge.report/1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from .facts.records import Evidence, Flow, NotChecked, Run
from .graph.topology import Topology

Basis: TypeAlias = Literal["site", "profile", "capability", "kin", "baseline"]  # three are absolute; most trusted first
COHORT: Final = "kin"  # equal devices or flows, beside which the subject differs; public name in the JSON
Severity: TypeAlias = Literal["critical", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")  # most severe first
ABSOLUTE: frozenset[Basis] = frozenset({"site", "profile", "capability"})
Verdict: TypeAlias = Literal["ok", "degraded", "failed", "unknown"]
# state: true now. event: happened, and stays in reports until it is cleared. measurement: a measured rate is too low.
FindingKind: TypeAlias = Literal["state", "event", "measurement"]
UNEXPLAINED = "unexplained"  # case of a finding: a line of a log reports a fault in words that linkgauge does not know
Origin: TypeAlias = Literal["live", "capture", "dumps"]
Context: TypeAlias = Literal["host", "job", "dumps"]
# Independent evidence of what a value should be, most trusted first: site file, machine type, product, equal devices,
# the past of this node (acceptance or an earlier boot).
Corroboration: TypeAlias = Literal["site", "profile", "product", "cohort", "baseline"]
# What a finding costs jobs: nothing, a factor (impact), that no job can use all GPUs, or nobody knows.
Cost: TypeAlias = Literal["none", "slower", "cannot run", "unknown"]
COSTS: tuple[Cost, ...] = ("cannot run", "slower", "unknown", "none")
CoverageGroup: TypeAlias = Literal["links", "counts", "states"]

SCHEMA: Literal["linkgauge.report/1"] = "linkgauge.report/1"


class Expectation(Struct, frozen=True, kw_only=True):
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


class Finding(Struct, frozen=True, kw_only=True):
    """A difference between the expected and the observed state: subject, both numbers, likely cause, next step."""

    code: str
    kind: FindingKind = "state"
    severity: Severity
    confidence: Literal["certain", "likely", "possible"] = "certain"
    subject: str
    subject_name: str | None = None
    device: str | None = None  # name, place and address: "gpu1 (module 2, 1e:00.0)"
    fact: str | None = None  # the fault in few words, without times: "runs on x8 of x16". It follows the device
    message: str
    expected: int | float | str | None = None
    observed: int | float | str | None = None
    unit: str | None = None
    basis: Basis | None = None
    expected_source: str | None = None
    cause: str | None = None
    candidates: tuple[str, ...] = ()  # subjects of which one is the cause, if the data do not show which
    case: str | None = None  # the variant of the fault, if the remedy depends on it: "below evidence", "firmware"
    limits: Mapping[str, float] = field(default_factory=dict)  # link -> rate it has left: for attribution, impact
    explains: tuple[str, ...] = ()  # "bandwidth-low:gpu3-numa0"
    impact: Mapping[str, float] = field(default_factory=dict)  # operation -> how many times slower
    cost: Cost = "unknown"
    location: Mapping[str, str | int | None] = field(default_factory=dict)  # slot, label: for a technician
    since: str | None = None
    silenced: str | None = None  # the operator's reason to ignore the finding
    stale: str | None = None  # why it could not be evaluated again; null if it is true at the time of the report
    evidence: tuple[Evidence, ...] = ()
    remedy: str | None = None  # the steps as one text
    steps: tuple[str, ...] = ()  # what to do, the cheapest step first, with the names of this node
    first_step: str | None = None  # in few words: "power-cycle, then reseat"


def worst_cost(findings: Iterable[Finding]) -> Cost:
    """The cost of the finding with the highest cost. Findings that only inform do not count."""
    return min((one.cost for one in findings if one.severity != "info"), key=COSTS.index, default="none")


class ReportedObservation(msgspec.Struct, frozen=True, kw_only=True):
    """One observation in the report: a number at a point in time."""

    about: str
    quantity: str
    unit: str
    value: float
    at: str
    busy: bool | None = None


class Uncorroborated(Struct, frozen=True):
    """A device, link or count whose values have no independent evidence. They may be wrong without a finding."""

    subject: str
    group: CoverageGroup
    quantities: tuple[str, ...]  # "link width"
    why: str


class Coverage(Struct, frozen=True):
    """How well the verdict is supported: the number of things by their weakest evidence, and those without any."""

    corroborated: Mapping[CoverageGroup, Mapping[Corroboration, int]] = field(default_factory=dict)
    uncorroborated: tuple[Uncorroborated, ...] = ()


class Range(Struct, frozen=True):
    """Factors by which something takes longer: with more overlap of messages and compute than usual, with the usual
    overlap, with less.
    """

    least: float
    usual: float
    most: float


class Training(Struct, frozen=True, kw_only=True):
    """Cost of the findings for the job of the site file. One of its nodes has the findings, the others none."""

    job: str
    gpus: int
    step_seconds: float  # without the findings
    slower: Range | None = None  # null if the job cannot run, or if the cost of each finding is unknown
    gpu_hours_a_day: float | None = None  # lost
    critical_tokens: float | None = None  # per GPU and step (ZeRO 2, 3: micro-batch), below which gradients limit
    critical_tokens_now: float | None = None
    load_seconds: float | None = None  # to load a checkpoint from this node's disks, if their rate was measured
    load_seconds_now: float | None = None


class JobRate(Struct, frozen=True, kw_only=True):
    """One kind of collective of one communicator of a job. Rates are bus bandwidth in bytes per second."""

    communicator: str
    name: str | None = None
    op: str
    algorithm: str | None = None
    protocol: str | None = None
    size: int  # bytes, as the NCCL Inspector counts them
    ranks: int
    nodes: int
    operations: int
    seconds: float  # median that the links took: the time of the rank that arrived last
    observed: float
    expected: tuple[Expectation, ...] = ()
    low: bool | None = None  # below an expected rate; null: there was nothing to compare it with
    slower_from: int | None = None  # number of the operation from which on it is slower


class Job(Struct, frozen=True, kw_only=True):
    """What the ranks of a running job recorded."""

    ids: tuple[str, ...] = ()  # Slurm's numbers, if they are known
    gpus: int
    nodes: int
    communicators: int
    files: int
    lines: int
    formats: tuple[str, ...] = ()
    rates: tuple[JobRate, ...] = ()


class Profile(Struct, frozen=True):
    """The machine type and how it was recognised."""

    name: str
    matched_by: str


class Report(Struct, frozen=True, kw_only=True):
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
    cost: Cost = "none"  # of all findings together; "slower" with findings of unknown cost: at least the factors
    training: Training | None = None  # if the site file describes a job
    levels: tuple[Level, ...] = ()
    observations: tuple[ReportedObservation, ...] = ()
    topology: Topology = Topology()
    cables: Mapping[str, str] = field(default_factory=dict)  # port or network device -> other end: "leaf3 port 17"
    runs: tuple[Run, ...] = ()
    seconds: float | None = None  # from the start of the command to its report
    job: Job | None = None  # if the report is of a job, not of a node
