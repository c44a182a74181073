"""The report of a measurement between nodes. Its JSON form is `linkgauge.fabric/1`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from ..facts.records import Evidence
from ..facts.units import as_gigabytes
from ..report import COHORT, Finding, Verdict
from .fabric_localization import Cause

SCHEMA: Literal["linkgauge.fabric/1"] = "linkgauge.fabric/1"


class Member(Struct, frozen=True, kw_only=True):
    """A node that was expected. `lost`: why it was not measured, or not to the end."""

    node: str
    verdict: Verdict | None = None  # of its diagnosis
    first_finding: str | None = None  # the most severe one
    places: tuple[str, ...] = ()  # "eth1: leaf3 swp12"
    lost: str | None = None


class Rate(Struct, frozen=True):
    """A measured rate in bytes per second. Flows of one round ran at the same time."""

    sender: str
    receiver: str
    rail: str
    round: int
    rate: float


class FabricReport(Struct, frozen=True, kw_only=True):
    """What the nodes are, the rates of their pairs, and what the slow pairs have in common."""

    schema: Literal["linkgauge.fabric/1"] = SCHEMA
    taken_at: str
    seconds: float
    planned_seconds: float
    planned_bytes: float
    rounds: int
    rounds_of_all_pairs: int  # that measure each pair
    members: tuple[Member, ...]
    rates: tuple[Rate, ...] = ()
    causes: tuple[Cause, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)  # of the subjects of causes: "node5/eth1" -> "leaf3 swp12"
    not_measured: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Degraded with a fault, else unknown if a node is missing or no pair was measured."""
        if faults(self.causes):
            return "degraded"
        return "unknown" if not self.rates or any(one.lost for one in self.members) or self.not_measured else "ok"


def node_findings(report: FabricReport, node: str) -> Iterator[Finding]:
    """The causes that are this node or its port. Only a cause that was confirmed is certain."""
    for cause in report.causes:
        if cause.kind in ("port", "node") and node in {name.partition("/")[0] for name in cause.names}:
            yield Finding(
                code="node-slow",
                kind="measurement",
                severity="critical",
                confidence="certain" if cause.alone is not None and len(cause.names) == 1 else "likely",
                subject=cause.name,
                message=sentence(cause),
                expected=cause.usual,
                observed=cause.rate,
                unit="bytes_per_second",
                basis=COHORT,
                expected_source="the usual rate of pairs in the same measurement",
                evidence=(Evidence("linkgauge fabric", f"{len(cause.pairs)} slow flows at {report.taken_at}"),),
            )


_WAYS = {"send": "sends", "receive": "receives", "both": "sends and receives"}


def sentence(cause: Cause) -> str:
    """What is slow, with both numbers."""
    reached, usual = as_gigabytes(cause.rate), as_gigabytes(cause.usual)
    again = "not measured again" if cause.alone is None else f"a flow alone reaches {as_gigabytes(cause.alone)}"
    alone = f"; {again}"
    count = len(cause.pairs)
    flows = f"{count} flow{'s' * (count > 1)}"
    name = " or ".join(cause.names)
    if cause.kind == "pair":
        return f"{cause.name} reaches {reached}; other pairs reach {usual}{alone}"
    if cause.kind == "uplink":
        where = f"the uplink between {' and '.join(cause.names)}" if len(cause.names) > 1 else f"the uplink of {name}"
        more = (
            "" if cause.elsewhere is None or cause.shared else f"; other uplinks carry {as_gigabytes(cause.elsewhere)}"
        )
        carried = as_gigabytes(cause.carried)
        return f"{where} carries at most {carried}: {flows} over it reach {reached}, others {usual}{alone}{more}"
    if cause.kind == "leaf":
        return f"{flows} below {name} reach {reached}; others reach {usual}{alone}"
    return f"{name} {_WAYS[cause.direction]} {reached} in {flows}; other nodes reach {usual}{alone}"


def faults(causes: Sequence[Cause]) -> list[Cause]:
    """The causes that are faults."""
    return [one for one in causes if not one.shared]
