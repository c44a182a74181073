"""Copies in a NUMA node, in the child where they run, on whatever machine the tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.models.facts.records import Flow, NotChecked, Observation, Record
from linkgauge.models.graph.topology import Device, Topology
from linkgauge.models.report import Report
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.memory.host_memory import SIZE, THREADS, plan
from linkgauge.probes.measure.probe import Effort, Probe, Scope
from tests.support.nodes.described import node, report_of
from tests.support.programs.live_probes import LONGEST

NODES = Path("/sys/devices/system/node")
TWO = Topology((Device("numa0", "numa"), Device("numa1", "numa"), Device("package0", "package")))


def test_memory_without_cpus_is_no_end_of_what_is_planned() -> None:
    """Grace shows the memory of its GPUs as further nodes, 32 beside four: all pairs of them would take 15 minutes."""
    report = report_of(node("gh200-quad"))
    ends = frozenset(device.id for device in report.topology.devices)
    four = ("numa0", "numa1", "numa2", "numa3")
    assert [probe.args for probe in plan(report, Scope(effort="full", ends=ends))] == [
        *((name,) for name in four),
        four,
    ]


def planned(effort: Effort, *ends: str) -> list[Probe]:
    report = Report(
        node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown", topology=TWO
    )
    return list(plan(report, Scope(effort=effort, ends=frozenset(ends))))


def copied(*nodes: str, root: str = "/") -> list[Record]:
    return list(Live(root).call("host_memory", *nodes, deadline=LONGEST))


def test_what_is_measured() -> None:
    assert [probe.args for probe in planned("quick", "numa0", "numa1", "package0")] == [("numa0",), ("numa1",)]
    assert [probe.args for probe in planned("full", "numa0", "numa1")] == [("numa0",), ("numa1",), ("numa0", "numa1")]
    assert [probe.args for probe in planned("full", "numa1")] == [("numa1",)]
    assert planned("full", "0000:17:00.0") == []
    assert all(
        probe.seconds < probe.deadline and probe.bytes == THREADS * SIZE * 9 for probe in planned("quick", "numa0")
    )
    assert planned("full", "numa0", "numa1")[2].bytes == 2 * THREADS * SIZE * 9


@pytest.mark.skipif(not (NODES / "node0/cpulist").is_file(), reason="the kernel shows no NUMA nodes")
def test_a_rate_the_bytes_that_it_took_and_a_latency() -> None:
    rate, moved, latency = copied("numa0")
    assert isinstance(rate, Observation)
    assert isinstance(moved, Observation)
    assert isinstance(latency, Observation)
    assert (rate.about, rate.quantity, rate.unit, rate.busy) == (
        Flow("copy", ("numa0",), SIZE),
        "rate",
        "bytes_per_second",
        True,
    )
    assert 1e6 < rate.value < 1e12
    assert (moved.about, moved.quantity, moved.unit) == ("numa0", "bytes_moved", "bytes")
    threads, rest = divmod(moved.value, 9 * SIZE)  # one pass that warms up, eight that are timed
    assert rest == 0
    assert 1 <= threads <= THREADS
    assert rate.evidence == moved.evidence
    assert rate.evidence.text == f"{threads:.0f} threads, 64 MiB each, best of 8 passes"
    assert (latency.about, latency.quantity, latency.unit) == (Flow("read", ("numa0",)), "latency", "seconds")
    assert 1e-8 < latency.value < 1e-4  # a cache answers in a few nanoseconds, no memory in ten


@pytest.mark.parametrize("node", ["numa4095", "numa", "package0", "numa/../../../../etc"])
def test_a_node_without_cpus_is_not_measured(node: str) -> None:
    assert copied(node) == []
    assert copied(node, "numa4095") == []


def test_memory_of_another_machine_is_not_measured(tmp_path: Path) -> None:
    (lost,) = copied("numa0", root=str(tmp_path))
    assert isinstance(lost, NotChecked)
    assert lost.why == "only files are read under --root"
