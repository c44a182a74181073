"""Correctable bus errors in an excerpt of a log: a few seconds say nothing of the rate in an hour."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1767225600.0
PORT = "pcieport 0000:40:01.1"


def log(seconds: float, count: int, later: float = 0.0) -> str:
    """So many errors within so many seconds, and a line of another program `later` seconds behind the last one."""
    lines = []
    for number in range(count):
        at = 1000.0 + seconds * number / max(count - 1, 1)
        lines.append(f"[{at:12.6f}] {PORT}: AER: Corrected error message received from 0000:41:00.0")
        lines.append(f"[{at:12.6f}] {PORT}: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)")
    if later:
        lines.append(f"[{1000.0 + seconds + later:12.6f}] systemd[1]: Started Session 4 of user ops.")
    return "\n".join(lines) + "\n"


def report(text: str) -> Report:
    return evaluate(assemble(list(read_text("dmesg.txt", text, AT)), Site(), AT, origin="dumps"))


@pytest.mark.parametrize("seconds", [0.01, 0.5, 5.0, 50.0])
@pytest.mark.parametrize("count", [3, 5, 20])
def test_a_short_excerpt_is_not_ok(seconds: float, count: int) -> None:
    found = report(log(seconds, count))
    assert found.verdict == "unknown"
    assert any("their rate is unknown" in (one.why or "") for one in found.not_checked)


@pytest.mark.parametrize(("seconds", "count", "later"), [(0.5, 3, 3600.0), (7200.0, 5, 0.0), (0.0, 1, 0.0)])
def test_a_long_log_shows_the_rate(seconds: float, count: int, later: float) -> None:
    assert not any("their rate is unknown" in (one.why or "") for one in report(log(seconds, count, later)).not_checked)
