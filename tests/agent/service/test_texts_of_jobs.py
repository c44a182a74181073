"""The service with the texts of a running job: levels, a finding that settles, the number of series, and the window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from linkgauge.agent.service.config import Config, Jobs
from linkgauge.agent.service.job_window import open_window
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.report import Report
from linkgauge.probes.host.entries import Folder
from tests.support.nodes.daemon_nodes import Node

FOLDER = "/var/lib/node_exporter/nccl_inspector"
LINE = (
    'nccl_bus_bandwidth_gbs{{version="v5.1",slurm_job_id="7",node="a",gpu="GPU{gpu}",comm_name="TP {group}",'
    'n_nodes="1",nranks="2",collective="AllReduce",message_size="1-2GB",algo_proto="Ring_simple"}} {rate}\n'
)
USUAL, SLOW = 330.0, 160.0  # GB/s


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path, config=Config(jobs=Jobs(inspector=FOLDER)))
    yield made
    made.close()


def cycle(node: Node, rates: Mapping[int, float], groups: int = 1) -> Report:
    """A cycle after the job has written its texts. `rates`: pair of GPUs -> rate; they differ a little each time."""
    collected = node.daemon.memory.collected.values()
    uuids = {one.key: one.uuid for several in collected for one in several if isinstance(one, Gpu) and one.uuid}
    files = {"/".join(FOLDER[1:].split("/")[:depth]): Folder() for depth in range(1, 5)}
    texts = {}
    for pair, rate in rates.items():
        for gpu in (2 * pair, 2 * pair + 1):
            name = uuids.get(f"gpu{gpu}", "").removeprefix("GPU-")
            lines = [
                LINE.format(gpu=gpu, group=f"{pair} {group}", rate=rate + node.host.wall / 1e6)
                for group in range(groups)
            ]
            texts[f"{FOLDER[1:]}/nccl_inspector_metrics_{name}.prom"] = "".join(lines)
    node.host.recorded = replace(node.host.recorded, entries={**node.host.recorded.entries, **files, **texts})
    return node.cycle()


def low(report: Report) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in report.findings if one.code == "bandwidth-low"]


def proven(report: Report) -> list[str]:
    return ["-".join(one.ends) for one in report.levels if one.op == "all_reduce of a job"]


def series(node: Node) -> int:
    return len([line for line in node.pages.read("metrics").splitlines() if not line.startswith(b"#")])


HEALTHY = dict.fromkeys(range(4), USUAL)


def test_good_links_are_shown_and_a_slow_group_settles(node: Node) -> None:
    """The first texts can be of a job that ended. A finding comes and goes after two cycles."""
    node.cycle()
    assert [proven(cycle(node, HEALTHY)) for _ in range(2)] == [
        [],
        ["gpu0-gpu1", "gpu2-gpu3", "gpu4-gpu5", "gpu6-gpu7"],
    ]
    found = [cycle(node, {**HEALTHY, 1: SLOW}) for _ in range(3)]
    assert [low(report) for report in found] == [[], [("bandwidth-low", "gpu2-gpu3")], [("bandwidth-low", "gpu2-gpu3")]]
    assert proven(found[-1]) == ["gpu0-gpu1", "gpu4-gpu5", "gpu6-gpu7"]
    assert [low(cycle(node, HEALTHY)) for _ in range(2)] == [[("bandwidth-low", "gpu2-gpu3")], []]


def test_a_job_with_many_groups_does_not_add_series_without_limit(node: Node) -> None:
    node.cycle()
    cycle(node, HEALTHY, groups=5)
    before = series(node)
    cycle(node, HEALTHY, groups=5)
    few = series(node) - before
    cycle(node, HEALTHY, groups=300)
    assert series(node) - before == few  # groups over the same GPUs are one series


def test_the_window_of_a_job_has_the_rates_that_it_reached(node: Node, tmp_path: Path) -> None:
    node.cycle()
    open_window(node.host, str(tmp_path), "7")
    for rate in (200.0, USUAL, 150.0):
        cycle(node, {0: rate, 1: rate})
    peaks = {about: round(rate / 1e9) for about, rate in node.daemon.peaks["7"].items() if "all_reduce" in about}
    assert peaks == {"gpu0-gpu1 all_reduce 1 GiB": 330, "gpu2-gpu3 all_reduce 1 GiB": 330}
