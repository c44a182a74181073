"""A finding as one line: "CRITICAL gpu1 (module 2, 1e:00.0) runs on x8 of x16: power-cycle, then reseat".

The text report, alerts and messages use the same line. It contains no time, so equal faults of equal nodes have equal
lines.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol, TypeAlias

from msgspec.structs import replace

from ..catalog import codes
from ..inventory.device_names import address_of, described, place
from ..inventory.snapshot import Snapshot
from ..report import Finding, Verdict

Action: TypeAlias = Literal["keep", "inspect", "drain"]
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_SPANS = re.compile(
    rf" \(compared with {_TIME}\)|(?<= since) the node was accepted at {_TIME}"
    rf"|,? (?:from {_TIME} to {_TIME}|(?:at|was accepted|since) {_TIME}|(?<=times )within \d+ (?:s|minutes|hours|days))"
)
_CLAUSE = re.compile(r"; |\. (?=[A-Z])")
_PREDICATE = re.compile(
    r"(?:and|asks|cannot|carried|carries|counted|could|did|does|fell|gave|had|has|is|left|limits|logged|lost|needs"
    r"|reached|reaches|received|reports|runs|sends|shows|supports|uses|was|went|works)\b"
)
_MOST = 110  # characters of a fact


def named(snapshot: Snapshot, finding: Finding) -> Finding:
    """The finding with its device and fact, and with its place as far as the rule did not give it."""
    location = finding.location or place(snapshot, finding.subject)
    device = described(snapshot, finding.subject, location)
    return replace(finding, location=location, device=device, fact=finding.fact or _fact(snapshot, finding))


def one_line(finding: Finding) -> str:
    """Severity, device, fact with its numbers, and first step."""
    return f"{finding.severity.upper()} {headline(finding)}"


def headline(finding: Finding) -> str:
    """Device, fact and first step."""
    step = f": {finding.first_step}" if finding.first_step else ""
    return f"{about(finding.device or finding.subject, finding.fact or finding.message)}{step}"


def about(device: str, fact: str) -> str:
    """ "gpu1 runs on x8 of x16"; a fact that is not a predicate follows a colon."""
    return f"{device} {fact}" if _PREDICATE.match(fact) else f"{device}: {fact}"


def _fact(snapshot: Snapshot, finding: Finding) -> str:
    """The first clause of the message, without the name of the device and without times."""
    text = finding.message
    address = address_of(snapshot, finding.subject) or finding.subject
    names = (
        finding.subject_name,
        f"port {finding.subject}",
        f"the GPU at {address}",
        f"memory controller {finding.subject}",
        finding.subject,
        address,
    )
    for name in filter(None, names):
        for prefix in (f"the kernel logged of {name}", f"the log says of {name}", f"the service {name}", name):
            if text.startswith(prefix) and text[len(prefix) : len(prefix) + 1] in (" ", ":", ","):
                text = text[len(prefix) :].lstrip(" :,")
                break
    text = _CLAUSE.split(_SPANS.sub("", text), maxsplit=1)[0].strip()
    return text if len(text) <= _MOST else f"{text[: _MOST - 3].rpartition(' ')[0].rstrip(' ,;:')}..."


class Judged(Protocol):
    """A report, or the part of it that decides what to do."""

    @property
    def verdict(self) -> Verdict: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...


def action(report: Judged) -> Action:
    """What to do with the node: drain it only for a critical fault of the node that is certain."""
    if report.verdict == "ok":
        return "keep"
    return "drain" if any(map(needs_drain, report.findings)) else "inspect"


def needs_drain(finding: Finding) -> bool:
    """Whether it is a critical fault of the node that is certain."""
    worst = finding.severity == "critical" and not finding.silenced
    return worst and finding.confidence == "certain" and not _of_a_job(finding.code)


def _of_a_job(code: str) -> bool:
    """Whether a job or its image has the fault, not the node."""
    return code in codes() and codes()[code].of_job
