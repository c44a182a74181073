"""A service second by second: the verdict and the findings of /metrics, and the gate, as one table.

    python -m tests.support.programs.each_second PORT STATE_DIR SECONDS

prints the table of a service that runs elsewhere, as on a virtual node.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from threading import Event, Thread
from urllib.request import urlopen

from linkgauge.agent.gate.decision import decide

SILENT = "no answer"
_LONGEST = 60.0  # seconds
_FINDING = re.compile(r'linkgauge_finding(_severity|_stale)?\{code="([^"]+)",subject="([^"]+)"\} (\S+)')
_VERDICT = re.compile(r'linkgauge_verdict\{verdict="(\w+)"\} 1\.0')
_SEVERITIES = {1.0: "info", 2.0: "warning", 3.0: "critical"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding on the page."""

    code: str
    subject: str
    severity: str
    stale: bool

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.subject}{' (stale)' if self.stale else ''}"


@dataclass(frozen=True, slots=True)
class Second:
    """What an operator sees at one time."""

    at: float  # seconds since the table began
    verdict: str  # SILENT: nothing listens
    findings: frozenset[Shown]
    closed: bool
    gate: str

    @property
    def codes(self) -> frozenset[tuple[str, str]]:
        """Code and subject of the findings that are more than information."""
        return frozenset((one.code, one.subject) for one in self.findings if one.severity != "info")

    @property
    def stale(self) -> frozenset[tuple[str, str]]:
        """Code and subject of the stale findings."""
        return frozenset((one.code, one.subject) for one in self.findings if one.stale)

    def __str__(self) -> str:
        found = "; ".join(sorted(str(one) for one in self.findings if one.severity != "info")) or "none"
        gate = "closed" if self.closed else "open"
        return f"{self.at:6.1f} s  {self.verdict:9}  gate {gate:6}  {found}"


@dataclass
class Table:
    """The seconds so far, with what happened between them."""

    address: tuple[str, int]
    folder: str  # of the service's state
    seconds: list[Second] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def note(self, text: str) -> None:
        """Write a line between the seconds: what is done to the machine."""
        self.lines.append(f"{time.monotonic() - self.began:6.1f} s  -- {text}")

    def look(self) -> None:
        """Add one second. The page is read before and behind the gate: a cycle of the service can end between both."""
        before, shown = None, page(self)
        while before != shown:
            before = shown
            gate = decide(None, self.folder, strict=True)  # as `linkgauge gate --strict`, without a process
            shown = page(self)
        verdict, findings = shown
        second = Second(time.monotonic() - self.began, verdict, findings, gate.closed, str(gate))
        self.lines.append(str(second))
        if not self.seconds or self.seconds[-1].gate != second.gate:
            self.lines.append(f"{'':10}{second.gate}")
        self.seconds.append(second)

    def until(self, true: Callable[[Second], bool]) -> Second:
        """Wait for a second for which this holds, from now on."""
        end, done = time.monotonic() + _LONGEST, len(self.seconds)
        while True:
            for second in self.seconds[done:]:
                done += 1
                if true(second):
                    return second
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def since(self, at: float) -> list[Second]:
        """The seconds after this time."""
        return [one for one in self.seconds if one.at > at]

    def text(self) -> str:
        """The table as text."""
        return "\n".join(self.lines)


def page(table: Table) -> tuple[str, frozenset[Shown]]:
    """The verdict and the findings of /metrics."""
    try:
        with urlopen("http://{}:{}/metrics".format(*table.address), timeout=_LONGEST) as answer:
            text = answer.read().decode()
    except (OSError, HTTPException):
        return SILENT, frozenset()
    series: dict[tuple[str, str], dict[str, float]] = {}
    for kind, code, subject, value in _FINDING.findall(text):
        series.setdefault((code, subject), {})[kind] = float(value)
    found = (Shown(*key, _SEVERITIES[one["_severity"]], "_stale" in one) for key, one in series.items())
    return "".join(_VERDICT.findall(text)), frozenset(found)


@contextmanager
def watched(table: Table) -> Iterator[Table]:
    """Look once a second until the end, and print the table then."""
    end = Event()

    def look() -> None:
        while not end.is_set():
            table.look()
            end.wait(1.0)

    looking = Thread(target=look)
    looking.start()
    try:
        yield table
    finally:
        end.set()
        looking.join()
        print(table.text())


def main(port: str, state_dir: str, seconds: str) -> None:
    """Print each second until the time is over."""
    table = Table(("127.0.0.1", int(port)), state_dir)
    with suppress(KeyboardInterrupt):
        while time.monotonic() - table.began < float(seconds):
            started = time.monotonic()
            shown = len(table.lines)
            table.look()
            print(time.strftime("%H:%M:%S"), "\n".join(table.lines[shown:]), flush=True)
            time.sleep(max(0.0, 1.0 - (time.monotonic() - started)))


if __name__ == "__main__":
    main(*sys.argv[1:])
