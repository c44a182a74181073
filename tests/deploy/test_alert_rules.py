"""The rules and example configurations of deploy/prometheus, checked by promtool, amtool and the catalog."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from linkgauge.exporters.metrics.catalog import METRICS
from linkgauge.models.catalog import codes
from tests.support.programs.certificates import authority, certificate, needs_openssl

pytestmark = pytest.mark.e2e

yaml = pytest.importorskip("yaml", reason="the extra [web] is not installed")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
TESTS = sorted((FOLDER / "tests").glob("*.yml"))
promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
amtool = pytest.mark.skipif(not shutil.which("amtool"), reason="amtool (Debian: prometheus-alertmanager) is missing")
STANDING = "instance:linkgauge_finding_severity:standing{"


def rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load((FOLDER / name).read_text())["groups"] for rule in group["rules"]]


ALERTS: Mapping[str, dict[str, Any]] = {rule["alert"]: rule for rule in rules("alerts.yml")}


def run(*command: str, folder: Path = FOLDER) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@promtool
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_alerts_fire_and_clear(path: Path) -> None:
    run("promtool", "check", "rules", "rules.yml", "alerts.yml", "joins.yml")
    run("promtool", "test", "rules", str(path))


@promtool
@needs_openssl
@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-http-sd.yml"])
def test_the_example_configurations(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "prometheus"
    shutil.copytree(FOLDER, folder)
    (folder / "tls").mkdir()
    authority(folder / "tls")
    certificate(folder / "tls", "prometheus", "DNS:prometheus.example")
    run("promtool", "check", "config", name, folder=folder)


@amtool
def test_the_example_of_alertmanager() -> None:
    run("amtool", "check-config", "alertmanager.yml")


def cases(alert: str) -> list[list[bool]]:
    """Of each test of the alert, over time: whether it fires for the node that is at fault."""
    found: list[list[bool]] = []
    for path in TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            asked = [case for case in test.get("alert_rule_test", ()) if case["alertname"] == alert]
            counts = [len(case["exp_alerts"]) for case in asked]
            found.append([count > min(counts) for count in counts])
    return found


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_has_three_cases(alert: str) -> None:
    """It does not fire, fires, and clears."""
    assert any(len(fires) >= 3 and not fires[0] and any(fires) and not fires[-1] for fires in cases(alert))


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_says_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert set(rule["labels"]) == {"severity", "scope"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].removeprefix("https://linkgauge.example/").partition("#")
    headings = re.findall(r"^### (\w+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor in [heading.lower() for heading in headings]
    assert alert in headings


def test_every_runbook_is_of_an_alert() -> None:
    headings = re.findall(
        r"^### (Linkgauge\w+)$", (ROOT / "docs" / "operate" / "prometheus-alerts.md").read_text(), re.MULTILINE
    )
    assert headings == list(ALERTS)


def selected(expr: str) -> Iterator[str]:
    """The codes that a selector of findings takes."""
    matchers = re.findall(r'code(=~|!~|=)"([^"]*)"', expr[expr.index(STANDING) :])
    for code in codes():
        if all(bool(re.fullmatch(pattern, code)) != (how == "!~") for how, pattern in matchers):
            yield code


def test_every_code_has_one_alert() -> None:
    """A later code has the alert LinkgaugeFinding."""
    alerts: dict[str, list[str]] = defaultdict(list)
    named: set[str] = set()
    for name, rule in ALERTS.items():
        if rule["expr"].startswith(STANDING):
            named.update(part for text in re.findall(r'"([^"]*)"', rule["expr"]) for part in text.split("|"))
            for code in selected(rule["expr"]):
                alerts[code].append(name)
    assert [code for code in codes() if len(alerts[code]) != 1] == []
    assert named - set(codes()) == set()
    assert "iommu-translation" in selected(ALERTS["LinkgaugeFinding"]["expr"])


def test_rules_ask_for_metrics_that_there_are() -> None:
    recorded = {rule["record"] for name in ("rules.yml", "joins.yml") for rule in rules(name)}
    text = "\n".join(rule["expr"] for rule in (*rules("rules.yml"), *rules("joins.yml"), *ALERTS.values()))
    asked = set(re.findall(r"(?:\w+:)?linkgauge\w*(?::\w+)?", re.sub(r'"[^"]*"', "", text)))
    assert asked - recorded - set(METRICS) == set()


def test_the_fleet_speaks_first() -> None:
    """The inhibiting alert must fire before the inhibited alert."""

    def minutes(alert: str) -> int:
        delay = ALERTS[alert]["for"]
        return int(delay[:-1]) * {"m": 1, "h": 60, "d": 1440}[delay[-1]]

    findings = [name for name, rule in ALERTS.items() if rule["expr"].startswith(STANDING)]
    assert all(minutes("LinkgaugeFleetFinding") < minutes(name) for name in findings)
    for kind in ("Silent", "NotChecked"):
        assert minutes(f"LinkgaugeFleet{kind}") < minutes(f"Linkgauge{kind}")
    assert minutes("LinkgaugeFleetUnknown") < minutes("LinkgaugeNodeUnknown")
