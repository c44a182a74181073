"""The status file of the service: its last verdict and findings. Gates read it, so they need no web server."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Literal

import msgspec

from ...models.facts.units import as_utc
from ...models.report import Finding, Report, Verdict
from .state_file import STATUS, read_state_file, remove_state_file, write_state_file

FILE = STATUS
_MISSED = 4  # cycles without an update after which the status is unknown
_LONGEST = 300.0  # seconds that a cycle with measurements may take


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """A source that gave no answer at its last reads."""

    name: str
    tries: int
    again: float  # seconds since 1970, when the service reads it again


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """What `linkgauge status` shows besides the result of the cycle. Times in seconds since 1970."""

    node: str | None = None
    unknown: str | None = None  # why the verdict is unknown
    measures_at: float | None = None  # the next measurement; None: none is scheduled
    stuck: tuple[Stuck, ...] = ()
    last_seen: Mapping[str, float] = {}  # "code:subject" of a finding -> its latest appearance
    unused: tuple[str, ...] = ()  # codes of entries of [ignore] that matched no finding for 30 days


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one cycle."""

    version: Literal[1] = 1
    at: float  # seconds since 1970, when the cycle ended
    every: float  # seconds until the next should end
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    service: ServiceState = ServiceState()
    peaks: Mapping[str, Mapping[str, float]] = {}  # open job window -> port, or a job's collective -> bytes per second


class StatusUnknown(Exception):
    """The status of the node is unknown. The message is the reason."""

    def __init__(self, reason: str, last: Status | None = None) -> None:
        super().__init__(reason)
        self.last = last  # the status of the last cycle, if the service has completed no cycle since


def write(
    folder: str,
    report: Report,
    at: float,
    every: float,
    peaks: Mapping[str, Mapping[str, float]],
    service: ServiceState | None = None,
) -> None:
    """Replace the status file. Raises OSError, and then the folder has none.

    A full disk has room for it after the old one is deleted. Nobody must take an old status for the present one.
    """
    findings = tuple(map(_public, report.findings))
    state = service or ServiceState()
    status = Status(at=at, every=every, verdict=report.verdict, findings=findings, service=state, peaks=peaks)
    content = msgspec.json.encode(status)
    try:
        write_state_file(folder, FILE, content, lasting=False)
    except OSError:
        remove_state_file(folder, FILE)
        write_state_file(folder, FILE, content, lasting=False)


def _public(finding: Finding) -> Finding:
    """What the pages `/` and `/metrics` show to every client. `/report` protects the rest: evidence, serial numbers."""
    return Finding(
        code=finding.code,
        kind=finding.kind,
        severity=finding.severity,
        confidence=finding.confidence,
        subject=finding.subject,
        message=finding.message if finding.silenced is None else "",
        device=finding.device,
        fact=finding.fact if finding.silenced is None else None,
        first_step=finding.first_step if finding.silenced is None else None,
        explains=finding.explains,
        since=finding.since,
        silenced=None if finding.silenced is None else "silenced",
        stale=finding.stale,
    )


def read(folder: str, now: float | None = None, booted: float | None = None) -> Status:
    """Read a current status file. Raises StatusUnknown if it is missing, too old, or older than the last boot."""
    now = time.time() if now is None else now
    booted = now - time.clock_gettime(time.CLOCK_BOOTTIME) if booted is None else booted
    path = os.path.join(folder, FILE)
    try:
        status = read_state_file(path, Status)
    except FileNotFoundError:
        raise StatusUnknown(
            f"{path} does not exist: linkgauge serve does not run here, or uses another --state-dir"
        ) from None
    except OSError as refused:
        raise StatusUnknown(f"{path}: {refused.strerror}") from None
    except ValueError as wrong:
        raise StatusUnknown(str(wrong)) from None
    if status.at > now + status.every:
        why = f"the last cycle of the service is in the future ({as_utc(status.at)}): the clock was set back"
    elif status.at < booted:
        why = f"the service has not completed a cycle since this machine booted (the last one: {as_utc(status.at)})"
    elif now - status.at > max(_MISSED * status.every, _LONGEST):
        why = f"the service has not completed a cycle since {as_utc(status.at)}"
    else:
        return status
    raise StatusUnknown(why, status)


def stored_peaks(folder: str) -> Mapping[str, Mapping[str, float]]:
    """The stored peaks, for a service that starts again."""
    try:
        return read(folder).peaks
    except StatusUnknown:
        return {}
