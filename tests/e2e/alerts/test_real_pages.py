"""What a pager receives from a real Prometheus and Alertmanager: ten kinds of fault, then a rolling reboot."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.report import Finding, Report
from tests.support.peers.alert_receiver import Alert, alertmanager
from tests.support.programs.certificates import authority, certificate, needs_openssl
from tests.support.programs.shipped_rules import fleet, seconds_for_minutes, shipped, targets_of
from tests.support.screens import SCREENS, screen
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed"),
    pytest.mark.skipif(not shutil.which("prometheus-alertmanager"), reason="prometheus-alertmanager is not installed"),
    needs_openssl,
]
GOLDEN = Path(__file__).parents[2] / "golden" / "screens"
BROKEN = tuple(name for name in SCREENS if name not in ("healthy", "six"))  # one node each, ten kinds
HEALTHY = 10
DOWN, NEXT = 5.0, 2.0  # seconds, for minutes: a node is down for five; the next one goes down two minutes after it


def text(report: Report, name: str) -> str:
    """The page of a node. Nodes of one rack would be one message."""
    return page(replace(report, node=name), CycleInfo(ended=time.time(), seconds=0.1), {"rack": f"r-{name}"}).decode()


def test_ten_faults_and_a_rolling_reboot(tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    names = [*BROKEN, *(f"n{number}" for number in range(HEALTHY))]
    pages: dict[str, str | None] = {
        f"127.0.2.{number}": text(screen(name if name in BROKEN else "healthy"), name)
        for number, name in enumerate(names, 1)
    }
    expected = {(name, one.code, one.subject) for name in BROKEN for one in counting(screen(name))}
    (tmp_path / "tls").mkdir()
    authority(tmp_path / "tls")
    certificate(tmp_path / "tls", "prometheus", "DNS:prometheus.example")
    with alertmanager(tmp_path) as manager, fleet(pages) as addresses:
        at = {"scheme: https": "scheme: http"}
        targets = targets_of(addresses)
        with shipped(tmp_path, tmp_path / "tls", "prometheus.yml", manager, targets, at, seconds_for_minutes):
            hook = manager.hook
            until(lambda: {summary(one) for one in hook.received} >= expected)
            time.sleep(3)  # a group that grows sends all its alerts again, after an interval of 1 s
            received = [*hook.received]
            roll(pages)
            time.sleep(2 * DOWN)
    assert {summary(one) for one in received} == expected
    assert hook.received == received
    lines = sorted({f"{one.receiver:7} {one.labels['alertname']:22} {one.summary}" for one in received})
    golden(GOLDEN / "pages.txt", "\n".join(lines) + "\n")


def summary(alert: Alert) -> tuple[str, str, str]:
    """Node, code and subject."""
    return alert.labels["node"], alert.labels.get("code", alert.labels["alertname"]), alert.labels.get("subject", "")


def counting(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.severity != "info"]


def roll(pages: dict[str, str | None]) -> None:
    """Reboot each node after the other."""
    up, start = dict(pages), time.monotonic()
    for number in range(len(up) + int(DOWN / NEXT) + 1):
        for place, host in enumerate(up):
            pages[host] = None if place * NEXT <= number * NEXT < place * NEXT + DOWN else up[host]
        time.sleep(max(start + (number + 1) * NEXT - time.monotonic(), 0))
    pages.update(up)
