"""A node breaks while the service runs, and the right alert arrives. A BIOS default of fifty nodes is one alert."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import Round
from tests.support.nodes.broken_nodes import HGX
from tests.support.nodes.described import node, report_of
from tests.support.nodes.trees import write
from tests.support.programs.alert_receiver import Alertmanager, alertmanager
from tests.support.programs.certificates import authority, certificate, needs_openssl
from tests.support.programs.prometheus_server import LONGEST, Prometheus, free_port, running, text_server

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed"),
    pytest.mark.skipif(not shutil.which("prometheus-alertmanager"), reason="prometheus-alertmanager is not installed"),
    needs_openssl,
]
SITE = """
[labels]
cluster = "west"
rack = "r7"
[[machine]]
name = "our-r750"
source = "order"
product = "PowerEdge R750"
"""
WEB = (
    "tls_server_config: {cert_file: node.crt, key_file: node.key, client_ca_file: ca.crt, "
    "client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [prometheus.example]}\n"
)
NIC = "0000:31:00.0"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates under the names that the example configurations have."""
    folder = tmp_path_factory.mktemp("tls")
    authority(folder)
    certificate(folder, "node", "IP:127.0.0.1")
    certificate(folder, "prometheus", "DNS:prometheus.example")
    return folder


@contextmanager
def shipped(
    folder: Path, tls: Path, config: str, manager: Alertmanager, targets: str, changed: Mapping[str, str]
) -> Iterator[Prometheus]:
    """A Prometheus with a copy of the shipped rules and an example configuration; seconds where they have minutes.

    `targets` is what the file of targets has; `changed`, what else is different in the configuration.
    """
    copy = folder / "prometheus"
    shutil.copytree(FOLDER, copy)
    shutil.copytree(tls, copy / "tls")
    (copy / "targets" / "nodes.yml").write_text(targets)
    rules = (copy / "alerts.yml").read_text()
    rules = re.sub("for: 2m", "for: 1s", rules)  # the fleet's
    rules = re.sub(r"for: \d+m", "for: 10s", rules)  # days stay days
    (copy / "alerts.yml").write_text(rules)
    (copy / "rules.yml").write_text((copy / "rules.yml").read_text().replace("interval: 2m", "interval: 1s"))
    text = re.sub(r"(scrape_interval|evaluation_interval): \w+", r"\1: 1s", (copy / config).read_text())
    for old, new in {"127.0.0.1:9093": f"127.0.0.1:{manager.port}", **changed}.items():
        assert old in text
        text = text.replace(old, new)
    (copy / config).write_text(text)
    with running(copy / config, folder / "data") as server:
        yield server


@contextmanager
def service(folder: Path, root: Path, tls: Path) -> Iterator[int]:
    """`linkgauge serve` over a tree of files, with TLS and short cycles; its port."""
    (tls / "web.yml").write_text(WEB)
    (folder / "site.toml").write_text(SITE)
    config = folder / "linkgauge.toml"
    config.write_text(f'web = "{tls / "web.yml"}"\nsite = "{folder / "site.toml"}"\ncycle = "1s"\ncycle_busy = "1s"\n')
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "linkgauge",
        "serve",
        "--root",
        str(root),
        "--config",
        str(config),
        "--state-dir",
        str(folder / "state"),
        "--listen",
        f"127.0.0.1:{port}",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port)
            yield port
        finally:
            process.terminate()
            process.wait(LONGEST)


def wait_for_port(port: int) -> None:
    """Wait until a server listens on the port."""
    end = time.monotonic() + LONGEST
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), LONGEST).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def targets_of(addresses: list[str]) -> str:
    """As a file of targets, and as an inventory answers."""
    return json.dumps([{"targets": addresses}])


def test_a_node_breaks_and_is_mended(tmp_path: Path, tls: Path) -> None:
    pytest.importorskip("yaml", reason="the extra [web] is not installed")
    root = tmp_path / "root"
    write(root, node("server-raid").entries)
    width = root / "sys/bus/pci/devices" / NIC / "current_link_width"
    with (
        alertmanager(tmp_path) as manager,
        service(tmp_path, root, tls) as port,
        shipped(tmp_path, tls, "prometheus.yml", manager, targets_of([f"127.0.0.1:{port}"]), {}) as server,
    ):
        server.wait('linkgauge_verdict{verdict="ok"} == 1')
        healthy = width.read_text()
        width.write_text("4\n")
        told = manager.hook.wait("LinkgaugeLinkNarrow", "firing")
        width.write_text(healthy)
        resolved = manager.hook.wait("LinkgaugeLinkNarrow", "resolved")
        server.wait('linkgauge_verdict{verdict="ok"} == 1')
    assert (told.receiver, told.labels) == (
        "pager",
        {
            "alertname": "LinkgaugeLinkNarrow",
            "severity": "critical",
            "scope": "node",
            "code": "pcie-link-narrow",
            "subject": NIC,
            "job": "linkgauge",
            "instance": "127.0.0.1",
            "node": "raid",
            "profile": "our-r750",
            "cluster": "west",
            "rack": "r7",
        },
    )
    assert (resolved.receiver, resolved.labels) == (told.receiver, told.labels)
    assert {one.labels["alertname"] for one in manager.hook.received} == {"LinkgaugeLinkNarrow"}


@contextmanager
def fifty() -> Iterator[list[str]]:
    """Addresses of fifty nodes whose firmware leaves the IOMMU on."""
    report = report_of(node("hgx-h100", HGX["IOMMU"][0]))
    round = Round(ended=time.time(), seconds=0.1)
    with ExitStack() as stack:
        addresses = []
        for number in range(1, 51):
            told = page(replace(report, node=f"n{number}"), round, {"cluster": "west", "rack": f"r{number % 5}"})
            host = f"127.0.1.{number}"
            addresses.append(f"{host}:{stack.enter_context(text_server(told.decode(), host))}")
        yield addresses


def test_one_default_of_fifty_nodes_is_one_alert(tmp_path: Path, tls: Path) -> None:
    with (
        alertmanager(tmp_path) as manager,
        fifty() as addresses,
        text_server(targets_of(addresses), kind="application/json") as inventory,
    ):
        at = {"https://inventory.example/": f"http://127.0.0.1:{inventory}/", "scheme: https": "scheme: http"}
        with shipped(tmp_path, tls, "prometheus-http-sd.yml", manager, "[]", at) as server:
            alert = manager.hook.wait("LinkgaugeFleetFinding", "firing")
            firing = 'count(ALERTS{alertname="LinkgaugeFinding",alertstate="firing"}) == 50'
            assert server.wait(firing) == {"": 50}
            held = Counter(wait_for_inhibited(manager))
            # Had any page of a node gone out, it would be here before this.
            manager.post("Afterwards")
            manager.hook.wait("Afterwards", "firing")
    assert held == {"LinkgaugeFinding": 50}
    assert (alert.receiver, alert.labels) == (
        "tickets",
        {
            "alertname": "LinkgaugeFleetFinding",
            "severity": "warning",
            "scope": "fleet",
            "cluster": "west",
            "profile": "hgx-h100-8",
            "code": "iommu-translation",
        },
    )
    assert {one.labels["alertname"] for one in manager.hook.received} == {"LinkgaugeFleetFinding", "Afterwards"}


def wait_for_inhibited(manager: Alertmanager) -> list[str]:
    """The alerts that are held back, once there are fifty."""
    end = time.monotonic() + LONGEST
    while len(held := manager.inhibited()) < 50:
        if time.monotonic() > end:
            raise TimeoutError(f"{len(held)} alerts are inhibited")
        time.sleep(0.2)
    return held
