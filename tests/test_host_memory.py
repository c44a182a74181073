"""The copy within a NUMA node, in the child where it runs, on whatever machine the tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.models.report import Report
from linkgauge.models.said import Flow, NotChecked, Observation, Said
from linkgauge.models.topology import Device, Topology
from linkgauge.probes.host_memory import SIZE, copies
from linkgauge.probes.live import Live

NODES = Path("/sys/devices/system/node")


def copied(node: str, root: str = "/") -> list[Said]:
    """What the probe of a machine with that one NUMA node says."""
    topology = Topology((Device(node, "numa"), Device("package0", "package")))
    report = Report(
        node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown", topology=topology
    )
    (source,) = copies(report).values()
    return list(source(Live(root)))


@pytest.mark.skipif(not (NODES / "node0/cpulist").is_file(), reason="the kernel shows no NUMA nodes")
def test_one_rate_and_the_bytes_that_it_took() -> None:
    rate, moved = Live().call("host_memory", "numa0", deadline=60)
    assert isinstance(rate, Observation)
    assert isinstance(moved, Observation)
    assert (rate.about, rate.quantity, rate.unit, rate.busy) == (
        Flow("copy", ("numa0",), SIZE), "rate", "bytes_per_second", True,
    )  # fmt: skip
    assert 1e6 < rate.value < 1e12
    assert (moved.about, moved.quantity, moved.unit) == ("numa0", "bytes_moved", "bytes")
    threads, rest = divmod(moved.value, 5 * SIZE)  # one pass that touches the pages, four that are timed
    assert rest == 0
    assert 1 <= threads <= 4
    assert rate.evidence == moved.evidence
    assert rate.evidence.text == f"{threads:.0f} threads, 64 MiB each, best of 4 passes"


@pytest.mark.parametrize("node", ["numa4095", "numa", "package0", "numa/../../../../etc"])
def test_a_node_without_cpus_is_not_measured(node: str) -> None:
    assert copied(node) == []


def test_memory_of_another_machine_is_not_measured(tmp_path: Path) -> None:
    (lost,) = copied("numa0", str(tmp_path))
    assert isinstance(lost, NotChecked)
    assert lost.why == "only files are read under --root"
