"""What a pager receives from a real Prometheus and Alertmanager: ten kinds of fault, and a rolling reboot.

The rules of deploy/prometheus run sixty times as fast. `pytest -s` prints the messages as a table.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.web.pages import Pages
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.report import Report
from tests.support.nodes.broken_nodes import BROKEN, HGX
from tests.support.nodes.described import node, report_of
from tests.support.peers.alert_receiver import Alert, Alertmanager, alertmanager
from tests.support.programs.shipped_rules import FOLDER, fleet, seconds_for_minutes, shipped, targets_of
from tests.support.screens import screen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed"),
    pytest.mark.skipif(not shutil.which("prometheus-alertmanager"), reason="prometheus-alertmanager is not installed"),
]
# Node -> alert, receiver, and the whole message.
MESSAGES = {
    "narrow": (
        "LinkgaugeLinkNarrow",
        "pager",
        "narrow: gpu1 (module 2, 1e:00.0) runs on x8 of x16: power-cycle, then reseat",
    ),
    "disk": ("LinkgaugeLinkSlow", "tickets", "disk: nvme3 (40:00.0) runs on x2 of x4: reseat the drive"),
    "nvlink": (
        "LinkgaugeNvlinkMissing",
        "pager",
        "nvlink: gpu3 (module 4, 3e:00.0) has 1 of 18 NVLinks inactive (7): read the fabric manager's log, then reset "
        "all GPUs together",
    ),
    "port": (
        "LinkgaugePortDown",
        "pager",
        "port: mlx5_4/1 (3c:00.0) is down (DOWN/Polling): check the cable at both ends, then reseat it",
    ),
    "absent": (
        "LinkgaugeDeviceMissing",
        "pager",
        "absent: gpu3 (module 4, 3e:00.0) is not on the bus any more: power-cycle, then read the log of the management "
        "controller",
    ),
    "xid": (
        "LinkgaugeGpuFault",
        "pager",
        "xid: gpu5 (module 6, 9e:00.0) logged Xid 48: double-bit ECC error: drain the node and reset the GPU",
    ),
    "replays": (
        "LinkgaugeErrorsRising",
        "tickets",
        "replays: gpu5 (module 6, 9e:00.0): 900,000 replays in the 24 hours since boot, more than 8 a minute: check "
        "both ends of the link, then reseat",
    ),
    "hot": (
        "LinkgaugeThrottled",
        "tickets",
        "hot: gpu6 (module 7, bb:00.0) is slowed down: hardware thermal slowdown now, 600 of 1,980 MHz at 92 °C: check "
        "its heat sink and airflow",
    ),
    "full": (
        "LinkgaugeStorageDegraded",
        "tickets",
        "full: /scratch has 1 GB of 28 TB free (0.0%): remove old files",
    ),
    "blind": (
        "LinkgaugeNodeUnknown",
        "tickets",
        "blind: verdict unknown, not read: Gpu (not-installed), GpuPair (not-installed): run linkgauge diagnose on the "
        "node",
    ),
}
ROLLING = tuple(f"e{number}" for number in range(1, 21))
SICK = {"e2": "nic", "e9": "absent", "e17": "pcie"}  # nodes of the rolling reboot that have a page before it
TOGETHER = 3  # nodes that reboot at the same time
AWAY, STARTING = 8.0, 2.0  # seconds, as minutes: without an answer, and before the first cycle is complete


def broken() -> dict[str, Report]:
    """One node for each kind of fault."""
    log = report_of(node("hgx-h100", HGX["a double-bit error"][0]))
    return {
        **{name: screen(kind) for name, kind in (("narrow", "pcie"), ("disk", "nvme"), ("nvlink", "nvlink"))},
        **{name: screen(kind) for name, kind in (("port", "nic"), ("absent", "absent"), ("hot", "heat"))},
        "xid": log,
        "replays": report_of(node("hgx-h100", HGX["replays"][0])),
        "full": report_of(node("hgx-h100", HGX["a scratch that is full"][0])),
        "blind": report_of(node("hgx-h100", BROKEN["no library of ours"].further)),
    }


def page_of(report: Report, name: str, cluster: str) -> str:
    """The page of a node after a cycle."""
    cycle = CycleInfo(ended=time.time(), seconds=0.1)
    return page(replace(report, node=name), cycle, {"cluster": cluster, "rack": "r1"}).decode()


def before_a_cycle(report: Report) -> str:
    """The page after a boot: the findings of the checkpoint, which are stale, and the verdict unknown."""
    return Pages({"cluster": "east", "rack": "r1"}, findings=report.findings).read("metrics").decode()


def of(manager: Alertmanager, cluster: str) -> list[Alert]:
    return [one for one in manager.hook.received if one.labels.get("cluster") == cluster]


def roll(pages: dict[str, str | None], hosts: Mapping[str, str], reports: Mapping[str, Report]) -> None:
    """Reboot all nodes, a few at the same time. The next ones go down while the first ones start."""
    starting: tuple[str, ...] = ()
    for first in range(0, len(ROLLING) + TOGETHER, TOGETHER):
        down = ROLLING[first : first + TOGETHER]
        pages.update(dict.fromkeys((hosts[name] for name in down), None))
        time.sleep(STARTING)
        pages.update({hosts[name]: page_of(reports[name], name, "east") for name in starting})
        if down:
            time.sleep(AWAY - STARTING)
        pages.update({hosts[name]: before_a_cycle(reports[name]) for name in down})
        starting = down


def test_messages_and_a_rolling_reboot(tmp_path: Path) -> None:
    reports = broken() | {name: screen(SICK.get(name, "healthy")) for name in ROLLING}
    hosts = {name: f"127.0.2.{number}" for number, name in enumerate(reports, 1)}
    pages: dict[str, str | None] = {
        host: page_of(reports[name], name, "east" if name in ROLLING else "west") for name, host in hosts.items()
    }
    (tmp_path / "tls").mkdir()
    tls = re.search(r" *tls_config:.*?key_file: \S+\n", (FOLDER / "prometheus.yml").read_text(), re.DOTALL)
    plain = {"scheme: https": "scheme: http", tls[0] if tls else "": ""}
    with alertmanager(tmp_path) as manager, fleet(pages) as addresses:
        targets = targets_of(addresses)
        with shipped(tmp_path, tmp_path / "tls", "prometheus.yml", manager, targets, plain, pace=seconds_for_minutes):
            for name in SICK:
                manager.hook.wait(alert_of(name), "firing", node=name)
            seen = len(of(manager, "east"))
            roll(pages, hosts, reports)
            received = [manager.hook.wait(alert, "firing", node=name) for name, (alert, *_) in MESSAGES.items()]
            manager.post("Afterwards")
            manager.hook.wait("Afterwards", "firing")
            during = of(manager, "east")[seen:]
    table(received)
    assert {one.labels["node"]: (one.labels["alertname"], one.receiver, one.summary) for one in received} == MESSAGES
    assert during == []


def alert_of(name: str) -> str:
    """The alert of a node that is broken before the reboot."""
    kinds = {"nic": "LinkgaugePortDown", "absent": "LinkgaugeDeviceMissing", "pcie": "LinkgaugeLinkNarrow"}
    return kinds[SICK[name]]


def table(received: list[Alert]) -> None:
    for one in received:
        print(f"| {one.labels['alertname']} | {one.receiver} | {one.summary} |")
