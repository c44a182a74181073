"""Metrics pages of a small fleet: healthy, broken and measured nodes of three machine types."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.report import Report
from linkgauge.probes.host.entries import UnreadableFile
from tests.support.nodes.broken_nodes import HGX
from tests.support.nodes.described import BROKEN, node, report_of, with_entry
from tests.support.nodes.measured_reports import flow, measured
from tests.support.peers.prometheus_server import Prometheus, running, text_server

RULES = Path(__file__).parents[3] / "deploy" / "prometheus"
# Nodes of one machine type, so that a median exists, with their faults.
# The unreadable files on n1.
SHUT = "sys/devices/pci0000:38/0000:38:01.0/0000:39:00.0/0000:3a:00.0/0000:3b:00.0/aer_dev_correctable"
WEST = {
    "n1": BROKEN,
    "n2": HGX["replays"][0],
    "n3": "[device.gpu3]\ninactive = [7]",
    "n4": HGX["IOMMU"][0],
    "n5": HGX["IOMMU"][0],
    "n6": HGX["IOMMU"][0],
    "n7": "",
    "n8": "",
}
SLOW = "n8"  # a flow is slower than its equals
SILENT = "n9"  # stops answering


def fleet() -> dict[str, str]:
    """The page of each node."""
    nodes = {name: node("hgx-h100", text) for name, text in WEST.items()}
    nodes["n1"] = with_entry(nodes["n1"], SHUT, UnreadableFile(13, "Permission denied"))
    pages = {name: _page(name, measured(report_of(one)), "west", f"r{ord(name[1]) % 3}") for name, one in nodes.items()}
    pages[SLOW] = _page(SLOW, _slower(measured(report_of(node("hgx-h100")))), "west", "r2")
    pages[SILENT] = _page(SILENT, report_of(node("hgx-h100", WEST["n3"])), "west", "r2")
    pages["a1"] = _page("a1", report_of(node("hgx-a100")), "east", "r1")
    pages["a2"] = _page("a2", report_of(node("hgx-b200", '[gpu]\nmissing = "not installed"')), "east", "r1")
    return pages


def _page(name: str, report: Report, cluster: str, rack: str) -> str:
    grave = tuple((one.code, one.subject) for one in report.findings if one.severity == "critical")
    cycle = CycleInfo(ended=time.time(), seconds=0.25, would_drain=grave)
    stale = "the source does not answer" if name == "n1" else None
    found = tuple(replace(one, since="2026-11-20T08:00:00Z", stale=stale) for one in report.findings)
    return page(replace(report, node=name, findings=found), cycle, {"cluster": cluster, "rack": rack}).decode()


def _slower(report: Report) -> Report:
    """Copies from numa0 to gpu3 at three quarters of their rate."""
    slow = flow("numa0", "gpu3", reached=0.675)
    levels = [slow if level.ends == slow.ends and level.op == slow.op else level for level in report.levels]
    return replace(report, levels=tuple(levels))


@contextmanager
def watched(folder: Path) -> Iterator[Prometheus]:
    """A Prometheus with the shipped recording rules that scrapes the fleet once per second. One node is silent."""
    shutil.copy(RULES / "rules.yml", folder)
    text = (folder / "rules.yml").read_text().replace("interval: 2m", "interval: 1s")
    (folder / "rules.yml").write_text(text)
    with ExitStack() as stack, ExitStack() as silent:
        pages = fleet()
        ports = {name: stack.enter_context(text_server(text)) for name, text in pages.items() if name != SILENT}
        ports[SILENT] = silent.enter_context(text_server(pages[SILENT]))
        targets = [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": name}} for name, port in ports.items()]
        jobs = [{"job_name": "linkgauge", "static_configs": targets}]
        config = folder / "prometheus.yml"
        settings = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config.write_text(json.dumps({"global": settings, "rule_files": ["rules.yml"], "scrape_configs": jobs}))
        server = stack.enter_context(running(config, folder / "data"))
        server.wait(f"count(instance:linkgauge_node_info:last) == {len(ports)}")
        silent.close()
        server.wait("instance:linkgauge:mute")
        yield server
