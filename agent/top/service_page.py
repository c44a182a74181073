"""Readings from the report of `linkgauge serve`, which its web server shows at /report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from http.client import HTTPException
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import msgspec
from msgspec.structs import replace

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ...models.report import SCHEMA, Report
from ...models.traffic.carriers import ORDER
from ...models.traffic.reading import Reading, of_report
from ..inputs.site_file import BadInput

_SECONDS = 10.0  # for a whole response
_MOST = 64 << 20  # bytes; the report of 72 GPUs has 2 MB
_VALID = 240.0  # seconds that a rate is shown: four cycles of a service while a job runs
_LOCAL = "the page is for requests from the machine itself: run the command there, or forward the port with ssh -L"


class ServiceFeed:
    """Reports of a service, which a thread puts into a queue. One thread: the service sends one report per cycle."""

    wanted: tuple[int, ...] = (2,)

    def __init__(self, url: str, interval: float) -> None:
        self._url, self._interval = url, interval
        self._report = fetch(url)  # before the start, so that a wrong address is an error of the command

    def start(self, put: Callable[[int, Report | str], None], end: Event) -> None:
        """Start the thread. It passes each new report, or why there is none, to `put` until `end` is set."""
        Thread(target=self._poll, args=(put, end), daemon=True).start()

    def take(self, answers: Iterable[Report | str]) -> Reading:
        """The reading after further answers. Without a report all counters are unknown."""
        *_, last = answers
        if isinstance(last, Report):
            self._report = last
            return of_report(last, time.time(), _VALID)
        return replace(of_report(self._report, time.time(), _VALID), counts={}, unread=dict.fromkeys(ORDER, last))

    def _poll(self, put: Callable[[int, Report | str], None], end: Event) -> None:
        put(0, self._report)
        before: Report | None = self._report
        while not end.wait(self._interval):
            try:
                report = fetch(self._url)
            except BadInput as wrong:
                put(0, str(wrong))
                before = None
            else:
                if report != before:  # a service whose loop has stopped changes its report without a new time
                    put(0, report)
                before = report


def fetch(url: str) -> Report:
    """The present report of the service at this address. Raises BadInput."""
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--url {url}: the address must begin with http:// or https://")
    try:
        raw = msgspec.json.decode(_body(f"{url.rstrip('/')}/report"))
    except HTTPError as refused:
        why = _LOCAL if refused.code in (401, 403) else f"{refused.code} {refused.reason}"
        raise BadInput(f"--url {url}: {why}") from None
    except (OSError, HTTPException, ValueError) as wrong:
        reason = getattr(wrong, "reason", wrong)
        raise BadInput(f"--url {url}: {getattr(reason, 'strerror', None) or reason}") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise BadInput(f"--url {url}: this is no report of linkgauge ({SCHEMA})")
    try:
        return replace(msgspec.convert({**raw, "not_checked": []}, Report), not_checked=tuple(_missed(raw)))
    except msgspec.ValidationError as wrong:
        raise BadInput(f"--url {url}: not a valid report: {wrong}") from None


def _body(url: str) -> bytes:
    """The body of a response. Raises OSError, HTTPException and ValueError."""
    until, parts, size = time.monotonic() + _SECONDS, list[bytes](), 0
    with urlopen(url, timeout=_SECONDS) as response:
        while part := response.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if size > _MOST or time.monotonic() > until:
                raise TimeoutError(f"the report is not complete after {_SECONDS:g} s or {_MOST >> 20} MiB")
    return b"".join(parts)


def _missed(raw: dict[str, Any]) -> Iterable[NotChecked]:
    """The not-checked entries. The public format has their reasons as sentences."""
    for one in raw.get("not_checked") or ():
        what, subject, why = (str(one.get(name)) for name in ("what", "subject", "why"))
        yield NotChecked(what=what, subject=subject, reason=Reason.OTHER, detail=why)
