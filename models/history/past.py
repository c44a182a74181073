"""The past of a node, as the service recorded it. Times are seconds since 1970, rates are bytes per second."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..facts.records import Flow
from ..inventory.inventory import Inventory
from ..report import Finding, Severity, Verdict


class Past(Struct, frozen=True):
    """A finding as the history keeps it."""

    code: str
    subject: str
    severity: Severity
    device: str
    fact: str


class State(Struct, frozen=True):
    """The verdict and the findings from a time until the next state."""

    at: float
    verdict: Verdict
    findings: tuple[Past, ...]


class History(Struct, frozen=True):
    """The states, the measured rates and the inventories of a node, each oldest first."""

    states: tuple[State, ...]
    rates: Mapping[Flow, tuple[tuple[float, float], ...]]  # time and rate
    inventories: tuple[Inventory, ...] = ()  # one for each change of the hardware


def past(finding: Finding) -> Past:
    """What the history keeps of a finding: without times and counts, which change with each report."""
    fact = finding.fact or finding.message
    return Past(finding.code, finding.subject, finding.severity, finding.device or finding.subject, fact)
