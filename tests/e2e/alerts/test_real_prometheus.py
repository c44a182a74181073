"""A real Prometheus scrapes the service over a recorded node, and joins it with pages of other exporters."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from linkgauge.agent.web.pages import Pages
from linkgauge.agent.web.server import serving
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.facts.units import from_utc
from tests.support.nodes.described import BROKEN, node, report_of
from tests.support.nodes.measured_reports import measured
from tests.support.nodes.trees import write
from tests.support.peers.prometheus_server import Prometheus, free_port, prometheus, text_server
from tests.support.programs.web_clients import AT, Clock

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed"),
    pytest.mark.slow,
]

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
GPUS = ("1b", "1e", "3b", "3e", "9b", "9e", "bb", "be")
# As dcgm-exporter and node_exporter write them.
DCGM = "".join(
    f'DCGM_FI_DEV_POWER_USAGE{{gpu="{number}",UUID="GPU-00000000-0000-4000-8000-{number + 1:012x}",'
    f'pci_bus_id="00000000:{bus.upper()}:00.0",device="nvidia{number}",modelName="NVIDIA H100 80GB HBM3",'
    f'Hostname="hgx"}} {70 + number}\n'
    for number, bus in enumerate(GPUS)
)
NODE = "".join(
    f'node_infiniband_port_data_received_bytes_total{{device="mlx5_{number}",port="1"}} {number}e9\n'
    for number in range(10)
) + "".join(f'node_network_receive_bytes_total{{device="{name}"}} 5\n' for name in ("eth0", "eth1", "ib3", "lo"))


class Scene(NamedTuple):
    """A Prometheus that scrapes, and what it scrapes."""

    server: Prometheus
    pages: Pages
    clock: Clock


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    clock = Clock()
    pages = Pages({"rack": "r7"}, monotonic=clock)
    pages.put(measured(report_of(node("hgx-h100", BROKEN))), CycleInfo(ended=from_utc(AT), seconds=0.25))
    with text_server(DCGM) as dcgm, text_server(NODE) as host, serving("127.0.0.1:0", pages) as ours:
        targets = {"linkgauge": ours.address[1], "dcgm": dcgm, "node": host}
        with prometheus(tmp_path_factory.mktemp("prometheus"), targets) as server:
            for job in targets:
                server.wait(f'up{{job="{job}"}} == 1')
            yield Scene(server, pages, clock)


def test_every_series_comes_in(scene: Scene) -> None:
    series = {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in parse(scene.pages.read("metrics").decode())
        for sample in family.samples
    }
    assert scene.server.wait('count({__name__=~"linkgauge_.+"})') == {"": len(series)}


@pytest.mark.parametrize("by", ["UUID", "pci_bus_id", "gpu"])
def test_gpus_are_joined_with_dcgm_exporter(scene: Scene, by: str) -> None:
    query = f'DCGM_FI_DEV_POWER_USAGE * on({by}) group_left(subject) linkgauge_device_info{{class="gpu"}}'
    found = scene.server.wait(f"sum by (subject) ({query})")
    assert found == {f"subject=0000:{bus}:00.0": 70 + number for number, bus in enumerate(GPUS)}


def test_ports_are_joined_with_node_exporter(scene: Scene) -> None:
    join = "node_infiniband_port_data_received_bytes_total * on(device, port) group_left(subject) linkgauge_device_info"
    found = scene.server.wait(f"sum by (subject) ({join}{{class='port'}})")
    assert found == {f"subject=mlx5_{number}/1": number * 1e9 for number in range(10)}
    join = "node_network_receive_bytes_total * on(device) group_left(subject) linkgauge_device_info"
    found = scene.server.wait(f"sum by (subject) ({join}{{class='netdev'}})")
    assert found == {f"subject={name}": 5 for name in ("eth0", "eth1", "ib3")}


@pytest.mark.skipif(not shutil.which("prometheus-node-exporter"), reason="prometheus-node-exporter is not installed")
def test_a_real_node_exporter_has_the_same_rates(tmp_path: Path) -> None:
    """It reads the tree of the recorded node as we do, and spells its ports as we do."""
    write(tmp_path, node("hgx-h100").entries)
    pages, port = Pages(monotonic=Clock()), free_port()
    pages.put(report_of(node("hgx-h100")), CycleInfo(ended=from_utc(AT), seconds=0.25))
    command = [
        "prometheus-node-exporter",
        f"--path.sysfs={tmp_path / 'sys'}",
        "--collector.disable-defaults",
        "--collector.infiniband",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (
        subprocess.Popen(command, stderr=subprocess.DEVNULL) as exporter,
        serving("127.0.0.1:0", pages) as ours,
        prometheus(tmp_path, {"linkgauge": ours.address[1], "node": port}) as server,
    ):
        try:
            join = "* on(device, port) group_left(subject) linkgauge_device_info{class='port'}"
            theirs = server.wait(f"sum by (subject) (node_infiniband_rate_bytes_per_second {join})")
            trained = server.wait("sum by (subject) (linkgauge_link_trained_bytes_per_second{kind='port'})")
        finally:
            exporter.kill()
    del theirs["subject=mlx5_1/1"]  # down: the kernel has a rate of it all the same
    assert theirs == {labels: rate for labels, rate in trained.items() if labels.startswith("subject=mlx5_")}
    assert len(theirs) == 9


def test_findings_have_a_place(scene: Scene) -> None:
    query = "linkgauge_finding_severity * on(subject) group_left(module_id, class) linkgauge_device_info"
    assert scene.server.wait(f"sum by (code, subject, module_id, class) ({query})") == {
        "class=gpu,code=pcie-link-narrow,module_id=2,subject=0000:1e:00.0": 3,
        "class=nvme,code=storage-link-slow,subject=0000:40:00.0": 2,
        "class=port,code=nic-port-down,subject=mlx5_4/1": 3,
    }
    rack = "linkgauge_finding * on(instance) group_left(rack) linkgauge_node_info"
    assert scene.server.wait(f"count by (rack) ({rack})") == {"rack=r7": 3}


def test_rates_can_be_divided_as_they_are(scene: Scene) -> None:
    divided = "linkgauge_link_observed_bytes_per_second / linkgauge_link_expected_bytes_per_second"
    assert scene.server.wait(f"count({divided})") == scene.server.wait("count(linkgauge_link_attained_ratio)")
    assert scene.server.wait(f"max(abs({divided} - linkgauge_link_attained_ratio))") == {"": pytest.approx(0, abs=1e-9)}


def test_the_queries_of_the_documentation(scene: Scene) -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    queries = [
        query for block in blocks for query in re.split(r"\n\n", re.sub(r"^#.*\n", "", block, flags=re.MULTILINE))
    ]
    assert len(queries) == 3
    for query in queries:
        if 'code="pcie-link-narrow"' in query:  # which is there
            assert scene.server.ask(query) == {}
            query = query.replace("pcie-link-narrow", "pcie-link-slow")
        assert scene.server.wait(query)


def test_a_service_without_cycles_is_unknown(scene: Scene) -> None:
    assert scene.server.wait('linkgauge_verdict{verdict="failed"} == 1')
    scene.clock.now = 61.0
    scene.server.wait('linkgauge_verdict{verdict="unknown"} == 1')
    assert scene.server.wait("linkgauge_finding and linkgauge_finding_stale")  # the last findings stay, stale
    scene.server.wait_for_nothing("linkgauge_check")
    assert scene.server.ask('linkgauge_verdict{verdict="failed"} == 1') == {}
    assert scene.server.wait("time() - linkgauge_cycle_timestamp_seconds")
    scene.clock.now = 0.0
    assert scene.server.wait('linkgauge_verdict{verdict="failed"} == 1')
