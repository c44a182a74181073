"""A node breaks while the service runs, and the right alert arrives. A BIOS default of fifty nodes is one alert."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from tests.support.nodes.broken_nodes import HGX
from tests.support.nodes.described import node, report_of
from tests.support.nodes.trees import write
from tests.support.peers.alert_receiver import Alertmanager, alertmanager
from tests.support.peers.prometheus_server import LONGEST, free_port, text_server
from tests.support.programs.certificates import authority, certificate, needs_openssl
from tests.support.programs.shipped_rules import fleet, shipped, targets_of

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
        alert = manager.hook.wait("LinkgaugeLinkNarrow", "firing")
        width.write_text(healthy)
        resolved = manager.hook.wait("LinkgaugeLinkNarrow", "resolved")
        server.wait('linkgauge_verdict{verdict="ok"} == 1')
    assert (alert.receiver, alert.labels) == (
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
    assert (resolved.receiver, resolved.labels) == (alert.receiver, alert.labels)
    assert {one.labels["alertname"] for one in manager.hook.received} == {"LinkgaugeLinkNarrow"}


def fifty() -> dict[str, str | None]:
    """The pages of fifty nodes whose firmware leaves the IOMMU on."""
    report = report_of(node("hgx-h100", HGX["IOMMU"][0]))
    cycle = CycleInfo(ended=time.time(), seconds=0.1)
    return {
        f"127.0.1.{number}": page(replace(report, node=f"n{number}"), cycle, labels(f"r{number % 5}")).decode()
        for number in range(1, 51)
    }


def labels(rack: str) -> dict[str, str]:
    return {"cluster": "west", "rack": rack}


def test_one_default_of_fifty_nodes_is_one_alert(tmp_path: Path, tls: Path) -> None:
    with (
        alertmanager(tmp_path) as manager,
        fleet(fifty()) as addresses,
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
