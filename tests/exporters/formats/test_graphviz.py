"""The topology as a graph for Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.exporters.formats.graphviz import as_dot
from linkgauge.models.graph.topology import Device, Link, Topology
from tests.support.nodes.described import BROKEN, node, report_of
from tests.support.nodes.mutation_rows import width
from tests.support.paths import TESTS


def test_a_whole_graph(golden: Callable[[Path, str], None]) -> None:
    report = report_of(width("0000:01:00.0", 8)(node("desktop")))
    golden(TESTS / "golden/graphviz_desktop.dot", as_dot(report.topology))


def test_hostile_names_stay_names() -> None:
    odd = Device('a"];}\n', "gpu", name="\\")
    graph = as_dot(Topology((odd, Device("b", "numa")), (Link("l", odd.id, "b", "pcie"),)))
    assert graph.count("\n") == 6
    assert '"a\\"];}\\n" -- "b"' in graph


@pytest.mark.skipif(not shutil.which("dot"), reason="dot (Debian: graphviz) is not installed")
def test_graphviz_reads_it() -> None:
    graph = as_dot(report_of(node("hgx-h100", BROKEN)).topology)
    done = subprocess.run(["dot", "-Tplain"], input=graph, capture_output=True, text=True, check=True, timeout=100)
    assert done.stderr == ""
    assert "gpu1" in done.stdout
