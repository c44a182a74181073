"""A service in a container: its GPUs stay the same while it runs, so one that its driver drops is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.agent.service import checkpoint
from linkgauge.agent.state.acceptance import Acceptance
from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, with_entry

GPU = "0000:be:00.0"
GIVEN = ("info", "gpu-driver-failed", "node")
MISSING = ("critical", "gpu-missing", GPU)


def found(report: Report) -> list[tuple[str, str, str]]:
    return [(one.severity, one.code, one.subject) for one in report.findings]


def with_seven(recorded: Recorded) -> Recorded:
    """The driver lists one GPU less, and is bound to all of them."""
    calls = {
        call: tuple(line.replace('"gpus":8', '"gpus":7') for line in lines if '"gpu7' not in line)
        for call, lines in recorded.calls.items()
    }
    return Recorded(recorded.taken, recorded.entries, calls)


@pytest.fixture
def pod(service: Callable[..., Node], tmp_path: Path) -> Node:
    made = service(tmp_path)
    made.host.recorded = with_entry(node("hgx-h100"), ".dockerenv", "")
    return made


def test_a_gpu_that_the_driver_drops(pod: Node) -> None:
    whole = pod.host.recorded
    assert pod.cycle(2).verdict == "ok"
    pod.host.recorded = with_seven(whole)
    report = pod.cycle(3)
    assert found(report) == [MISSING]
    assert report.verdict == "failed"
    pod.host.recorded = whole
    assert found(pod.cycle(3)) == []


def test_a_container_that_was_given_seven_gpus(service: Callable[..., Node], pod: Node) -> None:
    """Also after one that had eight: the same folder, another container."""
    pod.cycle(2)
    pod.daemon.save()
    other = service(Path(pod.daemon.folder))
    other.host.recorded = with_seven(pod.host.recorded)
    other.daemon.memory = checkpoint.load(pod.daemon.folder, other.daemon.memory, pod.host.now())
    assert found(other.cycle(3)) == [GIVEN]


def test_an_acceptance_ends_it(pod: Node) -> None:
    pod.cycle(2)
    pod.host.recorded = with_seven(pod.host.recorded)
    assert found(pod.cycle(2)) == [MISSING]
    pod.daemon.memory = checkpoint.with_acceptance(pod.daemon.memory, Acceptance(at=pod.host.now()))
    assert found(pod.cycle(2)) == [GIVEN]
