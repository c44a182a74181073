"""`linkgauge fleet --prometheus` with a real Prometheus that scrapes forty nodes, of which three are broken."""

from __future__ import annotations

import json
import shutil
import ssl
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.report import Report
from tests.support.fleet.reports import half_ports, healthy, lost_nic, noisy
from tests.support.peers.prometheus_server import free_port, running, text_server
from tests.support.programs.certificates import authority, certificate, needs_openssl
from tests.support.screens import screen

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("ibis"), reason="the extra [fleet] is not installed"),
    pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed"),
]
NODES = 40
BROKEN = {"node05": "half", "node17": "narrow", "node30": "lost"}


def report(name: str, random: Random) -> Report:
    kinds = {"half": half_ports(healthy(), random), "lost": lost_nic(healthy(), random), "narrow": screen("pcie")}
    return replace(noisy(kinds.get(BROKEN.get(name, ""), healthy()), random), node=name)


def text(name: str, random: Random) -> str:
    one = report(name, random)
    grave = tuple((finding.code, finding.subject) for finding in one.findings if finding.severity == "critical")
    return page(one, CycleInfo(ended=time.time(), seconds=0.1, would_drain=grave), {"cluster": "x"}).decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The address of a Prometheus that has scraped all nodes, and one target without an answer."""
    folder, random = tmp_path_factory.mktemp("prometheus"), Random(4)
    with ExitStack() as stack:
        names = [f"node{number:02}" for number in range(NODES)]
        ports = {name: stack.enter_context(text_server(text(name, random))) for name in names}
        ports["silent"] = free_port()
        targets = [
            {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": f'{name}:9"|.*'}} for name, port in ports.items()
        ]
        others = [{"targets": [f"127.0.0.1:{free_port()}"]}]  # no nodes of linkgauge
        jobs = [{"job_name": "gpu nodes", "static_configs": targets}, {"job_name": "web", "static_configs": others}]
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "2s"}, "scrape_configs": jobs}))
        found = stack.enter_context(running(config, folder / "data"))
        found.wait(f"count(linkgauge_cycle_duration_seconds) == {NODES} and count(up == 0)")
        yield f"http://127.0.0.1:{found.port}"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["fleet", *words], prog_name="linkgauge")


def test_the_broken_nodes_are_named(server: str) -> None:
    done = run("--prometheus", server, "--format", "csv")
    drained = {line.split(",")[1] for line in done.stdout.splitlines()[1:] if line.split(",")[2] == "1"}
    assert (done.exit_code, drained) == (0, {*BROKEN})
    shown = run("--prometheus", server).stdout
    assert f"FLEET  {NODES + 1} nodes, 2 machine types" in shown  # the silent one has no machine type
    assert "mlx5_2/1 runs at 25.0 GB/s; the median of equal nodes is 50.0 GB/s (and 7 more of this kind)" in shown


def test_metrics_and_reports_give_the_same_nodes_and_reasons(server: str, tmp_path: Path) -> None:
    from linkgauge.exporters.formats.json import as_json

    random = Random(4)
    for number in range(NODES):
        name = f"node{number:02}"
        (tmp_path / f"{name}.json").write_text(as_json(report(name, random)))
    tables = [
        run(*source, "--format", "csv", "--table", "reasons") for source in ((str(tmp_path),), ("--prometheus", server))
    ]
    both = [{tuple(line.split(",")[:3] + line.split(",")[5:8]) for line in one.stdout.splitlines()} for one in tables]
    assert both[0] == both[1]


def answering(status: int, body: str, headers: dict[str, str]) -> tuple[ThreadingHTTPServer, list[str | None]]:
    """A server with one answer, and the tokens that it got."""
    tokens: list[str | None] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            tokens.append(self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    return ThreadingHTTPServer(("127.0.0.1", 0), Answer), tokens


@pytest.mark.parametrize(
    ("status", "body", "headers", "error"),
    [
        (
            200,
            '{"status": "success", "data": {"resultType": "vector", "result": []}}',
            {},
            "no node of linkgauge there",
        ),
        (401, "", {}, "401 Unauthorized"),
        (422, '{"status": "error", "error": "too many samples"}', {}, "422 Unprocessable Entity: too many samples"),
        (302, "", {"Location": "http://127.0.0.1:1/"}, "302 Found"),
        (200, "<html>", {}, "not the API of Prometheus (JSON is malformed"),
    ],
)
def test_answers_that_are_no_data(tmp_path: Path, status: int, body: str, headers: dict[str, str], error: str) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    server, tokens = answering(status, body, headers)
    with server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        done = run("--prometheus", f"http://127.0.0.1:{server.server_address[1]}", "--token-file", str(token))
        server.shutdown()
        thread.join()
    assert done.exit_code == 64
    assert error in done.stderr
    assert set(tokens) == {"Bearer secret"}


@needs_openssl
def test_tls_checks_both_ends(tmp_path: Path) -> None:
    """The server is refused without its authority, and refuses a client without a certificate."""
    authority(tmp_path)
    certificate(tmp_path, "server", "IP:127.0.0.1")
    certificate(tmp_path, "client", "DNS:client")
    (tmp_path / "both.pem").write_text((tmp_path / "client.crt").read_text() + (tmp_path / "client.key").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    context.load_verify_locations(tmp_path / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    server, _ = answering(200, '{"status": "success", "data": {"result": []}}', {})
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = ("--prometheus", f"https://127.0.0.1:{server.server_address[1]}")
    ca, client = ("--ca-file", str(tmp_path / "ca.crt")), ("--client-file", str(tmp_path / "both.pem"))
    with server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        errors = [run(*url, *more).stderr for more in ((), ca, (*ca, *client))]
        server.shutdown()
        thread.join()
    assert "certificate verify failed" in errors[0]
    assert errors[1].startswith("Error: https://127.0.0.1")
    assert "no node" not in errors[1]
    assert "no node of linkgauge there" in errors[2]


def test_wrong_addresses_and_files(tmp_path: Path) -> None:
    token, absent = tmp_path / "token", tmp_path / "absent"
    token.write_text("two words")
    for words, error in (
        (("ftp://x",), "--prometheus ftp://x: the address must begin with http:// or https://"),
        (("http://x.example", "--token-file", str(token)), "the token would cross the network in clear text"),
        (("https://x.example", "--token-file", str(token)), "the file must hold one token"),
        (("https://x.example", "--ca-file", str(absent)), f"{absent}: No such file or directory"),
    ):
        done = run("--prometheus", *words)
        assert (done.exit_code, error in done.stderr) == (64, True), done.stderr
