"""NUMA nodes and their memory; packages and nodes of recorded machines as hwloc has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.inputs.resolve import from_paths
from linkgauge.models.facts.machine import Numa, Package
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.system.cpu import read_cpu
from linkgauge.probes.system.numa import read_numa
from tests.support.nodes.trees import tree

NODES = "sys/devices/system/node"
HWLOC = Path(__file__).parents[4] / "shared/data/hwloc"


def read(files: Mapping[str, str]) -> list[Record]:
    return [replace(said, cites={}) if isinstance(said, Numa) else said for said in read_numa(tree(files))]


def numa(number: int, cpus: str, memory: int, distance: str) -> Mapping[str, str]:
    meminfo = f"Node {number} MemTotal:       {memory} kB\nNode {number} MemFree:        1 kB"
    folder = f"{NODES}/node{number}"
    return {f"{folder}/cpulist": cpus, f"{folder}/meminfo": meminfo, f"{folder}/distance": distance}


def test_memory_without_cpus_and_a_gap_in_the_numbers() -> None:
    files = {f"{NODES}/online": "0,2", **numa(0, "0-1", 1000, "10 80"), **numa(2, "", 2000, "80 10")}
    assert read(files) == [
        Numa(key="numa0", cpus=(0, 1), memory=1024000, distances={"numa0": 10, "numa2": 80}),
        Numa(key="numa2", cpus=(), memory=2048000, distances={"numa0": 80, "numa2": 10}),
    ]


def test_where_it_stood() -> None:
    (fact,) = read_numa(tree({f"{NODES}/online": "0", **numa(0, "0-1", 1000, "10")}))
    assert isinstance(fact, Numa)
    assert fact.cites["cpus"] == Evidence(f"{NODES}/node0/cpulist", "0-1")


def test_a_list_that_ends_with_a_zero_byte() -> None:
    files = {f"{NODES}/online": "0\n\0", **numa(0, "0", 1, "10")}
    assert read(files) == [Numa(key="numa0", cpus=(0,), memory=1024, distances={"numa0": 10})]


def test_without_a_list_of_nodes() -> None:
    """As in 15 of 42 machines that hwloc recorded."""
    files = {**numa(0, "0-1", 1, "10 21"), **numa(10, "2-3\n\0", 1, "21 10"), f"{NODES}/has_cpu": "0"}
    assert read(files) == [
        Numa(key="numa0", cpus=(0, 1), memory=1024, distances={"numa0": 10, "numa10": 21}),
        Numa(key="numa10", cpus=(2, 3), memory=1024, distances={"numa0": 21, "numa10": 10}),
    ]


def test_a_kernel_without_numa() -> None:
    assert read({}) == []


def test_rubbish_hides_nothing_else() -> None:
    files = {f"{NODES}/online": "0-1", **numa(0, "0", 1, "10 21"), **numa(1, "1", 1, "21")}
    folder = f"{NODES}/node1"
    path, why = f"{folder}/distance", "'21' is not one distance for each of 2 nodes"
    files[f"{folder}/meminfo"] = "Node 1 MemFree: 1 kB"
    assert read(files) == [
        Numa(key="numa0", cpus=(0,), memory=1024, distances={"numa0": 10, "numa1": 21}),
        NotChecked(
            what="Numa.memory",
            subject="numa1",
            reason=Reason.UNREADABLE,
            path=f"{folder}/meminfo",
            detail="'Node 1 MemFree: 1 kB' has no MemTotal",
        ),
        NotChecked(what="Numa.distances", subject="numa1", reason=Reason.UNREADABLE, path=path, detail=why),
        Numa(key="numa1", cpus=(1,)),
    ]


def test_a_list_that_nobody_can_read() -> None:
    assert read({f"{NODES}/online": "all"}) == [
        NotChecked(
            what="Numa",
            subject="node",
            reason=Reason.UNREADABLE,
            path=f"{NODES}/online",
            detail="'all' is not a list of CPUs",
        )
    ]


@pytest.mark.skipif(not HWLOC.is_dir(), reason="needs hwloc's recorded machines in ../shared")
@pytest.mark.parametrize("name", ["32em64t-2n8c+dax+nvme+mic+dimms", "40intel64-2g2n4c+pcilocality", "nvidia-dgx-gb10"])
@pytest.mark.slow
def test_as_hwloc_has_it(name: str) -> None:
    host = from_paths([str(HWLOC / f"{name}.tar.bz2")]).host
    text = (HWLOC / f"{name}.xml").read_text()
    nodes = re.findall(r'type="NUMANode" os_index="(\d+)" cpuset="([^"]+)".* local_memory="(\d+)"', text)
    packages = re.findall(r'type="Package" os_index="(\d+)" cpuset="([^"]+)"', text)
    seen = [said for said in read_numa(host) if isinstance(said, Numa)]
    assert {n.key: (n.cpus, n.memory) for n in seen} == {
        f"numa{index}": (cpus(mask), int(memory)) for index, mask, memory in nodes
    }
    found = [said for said in read_cpu(host) if isinstance(said, Package)]
    assert {p.key: p.cpus for p in found} == {f"package{index}": cpus(mask) for index, mask in packages}
    assert sum(p.cores or 0 for p in found) == text.count('type="Core"')


def cpus(mask: str) -> tuple[int, ...]:
    """The CPUs of a set as hwloc writes it: 32-bit words, the highest first."""
    bits = int("".join(word[2:].zfill(8) for word in mask.split(",")), 16)
    return tuple(index for index in range(bits.bit_length()) if bits >> index & 1)
