"""What the service found last, in a file of its state folder: for gates, which must not wait for a web server."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Literal

import msgspec

from ...models.facts.units import as_utc
from ...models.report import Finding, Report, Verdict
from .atomic_write import put
from .state_file import read_small

FILE = "last.json"
_MISSED = 4  # cycles after which nobody knows any more how the node is
_LONGEST = 300.0  # seconds that a cycle may take which measures too


class Unknown(Exception):
    """Nobody knows how the node is. The message is the reason."""


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one cycle."""

    version: Literal[1] = 1
    at: float  # seconds since 1970, when the cycle ended
    every: float  # seconds until the next should end
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    peaks: Mapping[str, Mapping[str, float]] = {}  # of each open window: port -> bytes per second (window.py)


def write(folder: str, report: Report, at: float, every: float, peaks: Mapping[str, Mapping[str, float]]) -> None:
    """Keep it there, in the place of the one before. Raises OSError."""
    last = Last(at=at, every=every, verdict=report.verdict, findings=report.findings, peaks=peaks)
    os.makedirs(folder, exist_ok=True)
    put(os.path.join(folder, FILE), msgspec.json.encode(last), lasting=False)


def read(folder: str, now: float | None = None, booted: float | None = None) -> Last:
    """What is there and holds still. Raises Unknown: no service, one that stands still, one of before the boot."""
    now = time.time() if now is None else now
    booted = now - time.clock_gettime(time.CLOCK_BOOTTIME) if booted is None else booted
    path = os.path.join(folder, FILE)
    try:
        last = read_small(path, Last)
    except FileNotFoundError:
        raise Unknown(f"{path} is not there: linkgauge serve does not run here, or has another --state-dir") from None
    except OSError as refused:
        raise Unknown(f"{path}: {refused.strerror}") from None
    except ValueError as wrong:
        raise Unknown(str(wrong)) from None
    if not booted <= last.at <= now + last.every:
        raise Unknown(f"the service has found nothing since this machine was started ({as_utc(last.at)} is the last)")
    if now - last.at > max(_MISSED * last.every, _LONGEST):
        raise Unknown(f"the service stands still since {as_utc(last.at)}")
    return last


def peaks_of(folder: str) -> Mapping[str, Mapping[str, float]]:
    """The peaks that were kept, for a service that is started again."""
    try:
        return read(folder).peaks
    except Unknown:
        return {}
