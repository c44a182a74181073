"""Decide whether a job may run on this node: from findings and the table [gate] of the site file.

`decide` reads only the status file; nothing is measured.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...models.facts.units import as_utc
from ...models.report import Finding, Verdict
from ...models.site.gate import Cause, Gate, causes, why_open
from ..inputs import site_file
from ..state import acceptance, status_file
from ..state.status_file import StatusUnknown

_UNKNOWN = "some vital checks could not be evaluated: 'linkgauge diagnose' lists them"
_SECONDS = 1.0  # timeout of the check whether a file exists


class GateDecision(Struct, frozen=True, kw_only=True):
    """The state of a gate and its reasons."""

    gate: Gate
    causes: tuple[Cause, ...] = ()  # findings that close it, or would if it were enforced
    verdict: Verdict = "unknown"
    unknown: str | None = None  # why the verdict is unknown
    ignored: str = ""  # the most severe finding that does not close the gate, and why
    at: float | None = None  # time of the status, in seconds since 1970
    disabled: str | None = None  # why all gates are disabled
    strict: bool = False  # close although the site file does not enforce it: the job can use another node

    @property
    def closed(self) -> bool:
        """Whether the gate refuses jobs."""
        return bool(self.causes) and (self.gate.enforce or self.strict) and self.disabled is None

    def __str__(self) -> str:
        if not self.causes:
            if not self.unknown:
                return f"open: {self.ignored or self.verdict}"
            also = f"; {self.ignored}" if self.ignored else ""
            return f"open, although the status of the node is unknown: {self.unknown}{also}"
        first = self.causes[0]
        more = f" (and {len(self.causes) - 1} more)" if len(self.causes) > 1 else ""
        reasons = f"{first}{more}: {first.text} (verdict: {self.verdict})"
        if self.disabled:
            return f"open, because {self.disabled}; else it would close for {reasons}"
        return f"closed for {reasons}" if self.closed else f"open; with enforce = true it would close for {reasons}"


def decide(site: str | None, folder: str, strict: bool = False, further: Sequence[Finding] = ()) -> GateDecision:
    """The gate of the node whose service uses this state folder. Raises BadInput if the site file is wrong.

    `further`: findings of this node that the service does not know, from measurements between nodes.

    If the service has stopped, the findings of its last cycle still close the gate, unless the node was accepted since.
    """
    gate = site_file.site(site).gate
    disabled = disabled_by(gate.disable_file)
    try:
        found = status_file.read(folder)
    except StatusUnknown as reason:
        last = (*_of_last_cycle(reason, folder), *further)
        return decision_of(gate, "unknown", last, None, disabled, str(reason), strict)
    return decision_of(gate, found.verdict, (*found.findings, *further), found.at, disabled, strict=strict)


def _of_last_cycle(reason: StatusUnknown, folder: str) -> tuple[Finding, ...]:
    """The findings of the last cycle of a service that has stopped. An acceptance clears them."""
    if reason.last is None:
        return ()
    accepted = (acceptance.read(folder) or acceptance.Acceptance()).at
    if accepted is not None and accepted > reason.last.at:
        return ()
    why = f"not evaluated since {as_utc(reason.last.at)}"
    return tuple(replace(one, message=f"{one.message}; {why}") for one in reason.last.findings)


def decision_of(
    gate: Gate,
    verdict: Verdict,
    findings: Sequence[Finding],
    at: float | None,
    disabled: str | None,
    unknown: str | None = None,
    strict: bool = False,
) -> GateDecision:
    """The gate for these findings. `unknown`: why the state of the node is unknown; default: from the findings.

    `disabled`: why all gates are disabled (`disabled_by`). `at`: time of the findings, in seconds since 1970.
    """
    unknown = unknown or (_why_unknown(findings) if verdict == "unknown" else None)
    return GateDecision(
        gate=gate,
        causes=tuple(causes(findings, gate)) or (_blocked(gate, unknown) if unknown else ()),
        verdict=verdict,
        unknown=unknown,
        ignored=_ignored(verdict, findings, gate),
        at=at,
        disabled=disabled,
        strict=strict,
    )


def _why_unknown(findings: Sequence[Finding]) -> str:
    stale = next((one for one in findings if one.stale and not one.silenced and one.severity != "info"), None)
    return f"{stale.code} {stale.subject} could not be evaluated again: {stale.stale}" if stale else _UNKNOWN


def _ignored(verdict: Verdict, findings: Sequence[Finding], gate: Gate) -> str:
    """The verdict, the most severe finding that does not close the gate, and why it does not."""
    for one in findings:
        why = why_open(one, gate)
        if why and one.severity != "info":
            return f"{verdict} for {one.code} {one.subject}, which {why}"
    return ""


def _blocked(gate: Gate, why: str) -> tuple[Cause, ...]:
    return (Cause("unknown", "node", why),) if gate.unknown == "block" else ()


def disabled_by(path: str) -> str | None:
    """Why all gates are disabled, as text. A hung file system disables them too: it hangs on all nodes at once."""
    exists: list[bool] = []
    check = threading.Thread(target=lambda: exists.append(os.path.exists(path)), daemon=True)
    check.start()
    check.join(_SECONDS)
    if not exists:
        return f"the file system of {path} did not answer within {_SECONDS:g} s"
    return f"{path} exists" if exists[0] else None
