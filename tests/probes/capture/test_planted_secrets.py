"""Secrets in every place that linkgauge reads appear in no capture, and in no output of a diagnosis of a capture."""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.exporters.commands.ticket import as_ticket
from linkgauge.exporters.formats.json import as_json
from linkgauge.exporters.html.front_page import front_page
from linkgauge.exporters.html.report_page import as_html
from linkgauge.exporters.metrics import otlp
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.text.report import as_text
from linkgauge.models.history.past import past
from linkgauge.models.site.schema import Site
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.recorded import Recorded, dump, parse
from tests.support.nodes.described import ALL, node, report_of
from tests.support.planted_secrets import KINDS, planted

NODES = ("hgx-h100", "server-raid", "p5-tree", "mi300x", "desktop")
SLOW = ("hgx-h100", "p5-tree", "mi300x")
EACH = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in NODES]


def recording(machine: Recorded) -> Recorded:
    """What `linkgauge capture` records of the machine."""
    host = Recording(machine)
    diagnose(host, SOURCES, measure_nothing, Site())
    return parse(dump(scrub(host.recorded())))


def outputs(machine: Recorded) -> dict[str, str]:
    """All outputs about a machine."""
    snapshot, report = diagnose(machine, SOURCES, measure_nothing, Site())
    subjects = ["node", *dict.fromkeys(finding.subject for finding in report.findings)]
    return {
        "text": as_text(report, colour=False),
        "json": as_json(report),
        "page": front_page(report),
        "html": as_html(report),
        "history": msgspec.json.encode([past(one) for one in report.findings]).decode(),
        "metrics": page(report).decode(),
        "tickets": "\n".join(as_ticket(snapshot, report, one, {}) for one in subjects),
    }


def sent_over_otlp(machine: Recorded) -> str:
    """The bytes that a collector receives, one letter for each byte."""
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        otlp.send(f"http://127.0.0.1:{server.server_port}/v1/metrics", report_of(machine))
        thread.join()
    return b"".join(bodies).decode("latin-1")


def leaks(text: str, secrets: dict[str, str]) -> set[tuple[str, str]]:
    return {(kind, secret) for secret, kind in secrets.items() if secret.lower() in text.lower()}


@pytest.mark.parametrize("name", EACH)
def test_a_capture_and_its_outputs_have_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The whole machine is scrubbed, and what the sources record of it."""
    caplog.set_level(logging.DEBUG)
    machine, secrets = planted(node(name), 1000 * NODES.index(name))
    assert len(secrets) > 60
    recorded = recording(machine)
    assert leaks(dump(scrub(machine)), secrets) == set()
    assert leaks(dump(recorded), secrets) == set()
    for output, text in outputs(recorded).items():
        assert (output, leaks(text, secrets)) == (output, set())
    assert leaks(caplog.text, secrets) == set()


@pytest.mark.parametrize("name", EACH)
def test_the_outputs_of_a_live_node_name_only_the_node(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Host name, release of the kernel, and device and folder of a file system name what a finding is about."""
    caplog.set_level(logging.DEBUG)
    machine, secrets = planted(node(name), 1000 * NODES.index(name), in_calls=False)
    host, kernel = (str(machine.entries[f"proc/sys/kernel/{file}"]) for file in ("hostname", "osrelease"))
    mounts = [line.split(" ")[:2] for line in str(machine.entries["proc/self/mounts"]).splitlines()]
    known = " ".join((host, kernel, *(text for mount in mounts for text in mount)))
    secrets = {secret: kind for secret, kind in secrets.items() if secret not in known}
    for output, text in outputs(machine).items():
        assert (output, leaks(text, secrets)) == (output, set())
    assert leaks(caplog.text, secrets) == set()


def test_a_collector_receives_no_secret() -> None:
    machine, secrets = planted(node("desktop"), 7000)
    text = sent_over_otlp(recording(machine))
    assert "linkgauge" in text
    assert leaks(text, secrets) == set()


def test_there_are_two_hundred_secrets_of_thirty_kinds() -> None:
    every = [planted(node(name), 1000 * number)[1] for number, name in enumerate(NODES)]
    assert sum(map(len, every)) >= 200
    assert len(KINDS) == 30
    assert {kind for secrets in every for kind in secrets.values()} == {*KINDS}


def summary(machine: Recorded) -> list[tuple[str, str, int]]:
    """The findings. A stand-in may replace a name, so subjects that are no devices of the kernel are left out."""
    report = report_of(machine)
    return sorted((one.code, one.severity, len(one.evidence)) for one in report.findings)


@pytest.mark.parametrize("name", EACH)
def test_a_capture_with_secrets_gives_the_same_findings(name: str) -> None:
    machine, _ = planted(node(name), 5000)
    assert summary(recording(machine)) == summary(machine)


@pytest.mark.parametrize(
    "name", [one if one in ("server-raid", "desktop") else pytest.param(one, marks=pytest.mark.slow) for one in ALL]
)
def test_a_capture_of_a_described_node_gives_the_same_report(name: str) -> None:
    before, after = report_of(node(name)), report_of(recording(node(name)))
    assert after.verdict == before.verdict
    assert [(one.code, one.severity, one.subject) for one in after.findings] == [
        (one.code, one.severity, one.subject) for one in before.findings
    ]
