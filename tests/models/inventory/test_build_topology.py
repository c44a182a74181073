"""Rated rates and grades of links: memories, links between processors, and links that a hypervisor hides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.exporters.text.tree import as_tree
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import HostBridge, Node, Numa, Package, Pci, Port, Rdma
from linkgauge.models.facts.merge import merge
from linkgauge.models.facts.pcie_rates import rated as pcie
from linkgauge.models.facts.records import Fact
from linkgauge.models.graph.routes import rated, route
from linkgauge.models.graph.topology import Link, Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.build import build_topology
from linkgauge.models.site.schema import Machine, Site
from tests.support.nodes.described import node

ROME, XEON, GRACE = "AMD EPYC 7742 64-Core Processor", "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", "Neoverse-V2"
GEN4X8, GEN4X16, GEN5X16 = pcie(16e9, 8), pcie(16e9, 16), pcie(32e9, 16)
BRIDGE, GPU, NIC = 0x060400, 0x030200, 0x020000
H100 = 0x2330


def topology(facts: Iterable[Fact], site: Site | None = None, machine: Machine | None = None) -> Topology:
    return build_topology(merge(facts)[0], site or Site(), machine)


def sockets(*models: str | None, nodes: int = 1, memory: int | None = None) -> list[Fact]:
    """Packages, each with as many NUMA nodes of one CPU."""
    records: list[Fact] = []
    for index, model in enumerate(models):
        numbers = range(index * nodes, (index + 1) * nodes)
        records.append(Package(key=f"package{index}", model=model, cpus=tuple(numbers)))
        records += [Numa(key=f"numa{number}", cpus=(number,), memory=memory) for number in numbers]
    return records


def memories(built: Topology) -> dict[str, tuple[float | None, str]]:
    return {link.id: (link.rated, link.grade) for link in built.links if link.kind == "memory"}


def test_memory_of_numa_nodes_is_their_part_of_the_socket() -> None:
    built = topology(sockets(ROME, ROME, nodes=4))
    assert memories(built) == {f"numa{n}/memory": (51.2e9, "ddr4") for n in range(8)}
    assert rated(built.memory["numa5"]) == 51.2e9
    assert {link.a for link in built.links if link.a == link.b} == {f"numa{n}" for n in range(8)}


def test_no_memory_of_what_is_not_known() -> None:
    assert memories(topology(sockets("Intel(R) Core(TM) i9-13900K", None))) == {}
    alone = [*sockets(ROME), Numa(key="numa1", cpus=(), distances={"numa0": 17, "numa1": 10})]  # CXL
    assert memories(topology(alone)) == {"numa0/memory": (204.8e9, "ddr4")}
    assert memories(topology([*sockets(ROME), Node(key="node", virtual=True)])) == {}
    assert memories(topology([Numa(key="numa0", cpus=(0,))])) == {}


@pytest.mark.parametrize(
    ("device", "size", "rate"), [(0x2342, 128 << 30, 512e9), (0x2342, 480 << 30, 384e9), (0x2941, 480 << 30, 512e9)]
)
def test_memory_of_grace_by_its_gpu_and_its_size(device: int, size: int, rate: float) -> None:
    gpu = [
        Pci(key="0009:01:00.0", pci_class=GPU, vendor=0x10DE, device=device),
        Gpu(key="gpu0", address="0009:01:00.0"),
    ]
    found = memories(topology([*sockets(GRACE, memory=size), *gpu]))
    assert found["numa0/memory"] == (rate, "lpddr5x")


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ((XEON, XEON), [("package0>package1", 44.8e9, "upi")]),
        ((ROME, ROME), [("package0>package1", 108e9, "xgmi-cpu")]),
        ((ROME, XEON), [("package0>package1", None, "")]),
        (("Intel(R) Xeon(R) Platinum 8480C",) * 2, [("package0>package1", None, "")]),  # UPI 2.0
        ((None, None), [("package0>package1", None, "")]),
        ((XEON,), []),
        ((XEON,) * 3, [(f"package{a}>package{b}", None, "") for b in range(3) for a in range(b)]),
    ],
)
def test_what_joins_processors(models: tuple[str | None, ...], expected: list[tuple[str, float | None, str]]) -> None:
    links = topology(sockets(*models)).links
    assert [(link.id, link.rated, link.grade) for link in links if link.kind == "interconnect"] == expected
    virtual = topology([*sockets(*models), Node(key="node", virtual=True)]).links
    assert not any(link.rated or link.grade for link in virtual)


def gpus(*products: int, driver: bool = True) -> list[Fact]:
    records: list[Fact] = [Numa(key="numa0", cpus=(0,))]
    for n, device in enumerate(products):
        records.append(Pci(key=f"0000:0{n}:00.0", pci_class=GPU, vendor=0x10DE, device=device))
        records += [Gpu(key=f"gpu{n}", address=f"0000:0{n}:00.0")] if driver else []
    return records


def test_memory_of_gpus() -> None:
    built = topology(gpus(H100, 0x27B8, 0x9999))  # an L4, and an unknown product
    expected = {"0000:00:00.0/memory": (3350e9, "hbm"), "0000:01:00.0/memory": (300e9, "gddr")}
    assert memories(built) == expected
    assert rated(built.memory["0000:00:00.0"]) == 3350e9
    assert memories(topology(gpus(H100, 0x27B8, driver=False))) == expected
    named = [Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3"), Gpu(key="gpu1", name="NVIDIA H100 80GB HBM3 MIG 1g.10gb")]
    assert memories(topology(named)) == {"gpu0/memory": (3350e9, "hbm")}


def test_memory_of_gpus_in_a_guest() -> None:
    """Without a driver, a slice of a GPU looks like a whole one."""
    guest = Node(key="node", virtual=True)
    assert memories(topology([guest, *gpus(H100, driver=False)])) == {}
    assert memories(topology([guest, *gpus(H100)])) == {"0000:00:00.0/memory": (3350e9, "hbm")}
    part = Gpu(key="gpu0", address="0000:00:00.0", virtualization="vGPU")
    assert memories(topology([guest, *gpus(H100, driver=False), part])) == {}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (GpuLink(key="gpu0/nvlink0", kind="nvlink", active=True, remote="0000:01:00.0"), ("nvlink4", 25e9)),
        (GpuLink(key="gpu0/xgmi0", kind="xgmi", active=True, remote="0000:01:00.0", speed=64e9), ("xgmi", 64e9)),
        (GpuLink(key="gpu0/c2c0", kind="c2c", active=True), ("c2c4", None)),
    ],
)
def test_grades_of_gpu_links(fact: GpuLink, expected: tuple[str, float | None]) -> None:
    (link,) = (link for link in topology([*gpus(H100, H100), fact]).links if link.id == fact.key)
    assert (link.grade, link.rated) == expected


def test_the_grade_of_a_link_of_an_unknown_gpu_is_what_its_driver_says() -> None:
    records = [GpuLink(key="gpu0/nvlink0", kind="nvlink", active=True, version=5, remote="0000:01:00.0")]
    (link,) = (link for link in topology([*gpus(0x9999, 0x9999), *records]).links if link.kind == "nvlink")
    assert (link.grade, link.rated) == ("nvlink5", None)


def port(key: str, parent: str, pci_class: int = BRIDGE, vendor: int = 0x1B36, **fields: Any) -> Pci:
    fields = {"max_speed": 2.5e9, "max_width": 1, "speed": 2.5e9, "width": 1, **fields}
    return Pci(key=key, parent=parent, pci_class=pci_class, vendor=vendor, **fields)


GUEST: list[Fact] = [
    Node(key="node", virtual=True),
    Numa(key="numa0", cpus=(0,)),
    HostBridge(key="pci0000:40", numa=0),
    port("0000:40:01.0", "pci0000:40"),
    port("0000:41:00.0", "0000:40:01.0"),
    port("0000:42:00.0", "0000:41:00.0"),
    port("0000:42:01.0", "0000:41:00.0"),
    port("0000:43:00.0", "0000:42:00.0", GPU, 0x10DE, device=H100),
    Gpu(key="gpu0", address="0000:43:00.0"),
    port("0000:44:00.0", "0000:42:01.0", NIC, 0x1D0F, device=0xEFA1),
    Rdma(key="efa_0", address="0000:44:00.0"),
    port("0000:40:02.0", "pci0000:40"),
    port("0000:45:00.0", "0000:40:02.0", NIC, 0x1D0F, device=0xEC20),
    port("0000:40:03.0", "pci0000:40", GPU, 0x10DE, device=H100),
    Gpu(key="gpu1", address="0000:40:03.0"),
]
P5 = Machine(name="ours", source="x", gpu="H100*", gpu_link="pcie5x16", gpu_path="pcie4x8", nic_link="pcie4x16")


def of_tree(built: Topology) -> list[tuple[str, str, float | None, float | None, str]]:
    parts = [link for link in built.links if link.b.startswith("0000") and link.a != link.b]
    return [(one.kind, one.id, one.rated, one.trained, one.grade) for one in parts if one.grade or one.kind == "pcie"]


def test_links_that_a_hypervisor_hides_are_those_of_the_machine_type() -> None:
    built = topology(GUEST, machine=P5)
    assert of_tree(built) == [
        ("pcie", "0000:40:01.0>0000:41:00.0", GEN4X8, None, "pcie4x8"),
        ("pcie", "0000:42:00.0>0000:43:00.0", GEN5X16, None, "pcie5x16"),
        ("pcie", "0000:42:01.0>0000:44:00.0", GEN4X16, None, "pcie4x16"),
        ("pcie", "0000:40:02.0>0000:45:00.0", None, None, ""),  # no fabric NIC
        ("internal", "pci0000:40>0000:40:03.0", GEN4X8, None, "pcie4x8"),  # on the root bus: the narrower
    ]
    path = route(built, "numa0", "gpu0")
    assert path
    tightest = min(path, key=rated)
    assert (rated(tightest), tightest.links[0].id) == (GEN4X8, "0000:40:01.0>0000:41:00.0")


@pytest.mark.parametrize("machine", [None, Machine(name="ours", source="x", gpu="H100*")])
def test_without_a_machine_type_hidden_links_have_no_rate(machine: Machine | None) -> None:
    assert {link[2:] for link in of_tree(topology(GUEST, machine=machine))} == {(None, None, "")}


def test_half_of_what_a_machine_type_may_say() -> None:
    path = topology(GUEST, machine=Machine(name="ours", source="x", gpu="H100*", gpu_path="pcie4x8"))
    assert [link[1] for link in of_tree(path) if link[4]] == ["0000:40:01.0>0000:41:00.0", "pci0000:40>0000:40:03.0"]
    own = topology(GUEST, machine=Machine(name="ours", source="x", gpu="H100*", gpu_link="pcie5x16"))
    assert [link[1] for link in of_tree(own) if link[4]] == ["0000:42:00.0>0000:43:00.0", "pci0000:40>0000:40:03.0"]


def test_what_can_be_read_is_believed_before_the_machine_type() -> None:
    gen5: dict[str, Any] = {"max_speed": 32e9, "max_width": 16}
    real = [*GUEST, port("0000:50:01.0", "pci0000:50", vendor=0x8086, **gen5)]
    real.append(port("0000:51:00.0", "0000:50:01.0", GPU, 0x10DE, device=H100, **gen5))
    link = topology(real, machine=P5).link_below["0000:51:00.0"]
    assert (link.rated, link.trained, link.grade) == (GEN5X16, pcie(2.5e9, 1), "pcie5x16")
    trusted = topology(GUEST, Site(trust_virtual_links=True), P5)
    assert {link.grade for link in trusted.link_below.values()} == {"pcie1x1"}


def test_cpu_to_gpu_on_p5() -> None:
    records = [one for reader in SOURCES for one in collect(reader, node("vm-p5"))]
    machine = Machine(name="p5", source="x", product="p5.48xlarge", gpu_link="pcie5x16", gpu_path="pcie4x8")
    built = assemble(records, Site(machine=(machine,)), 0.0).topology
    for number in range(8):
        path = route(built, f"numa{number // 4}", f"gpu{number}")
        assert path
        assert min(map(rated, path)) == GEN4X8
        assert rated(path[-1]) == GEN5X16


@pytest.mark.parametrize(("state", "trained"), [("ACTIVE", 50e9), (None, 50e9), ("DOWN", None)])
def test_the_rate_of_a_port_whose_state_is_not_known(state: str | None, trained: float | None) -> None:
    """NCCL's topology files have the speed of a NIC and not its state: NCCL uses only ports that are up."""
    function = Pci(key="0000:10:00.0", pci_class=NIC, parent="pci0000:10")
    adapter = Rdma(key="mlx5_0", address=function.key)
    port = Port(key="mlx5_0/1", device="mlx5_0", state=state, rate=50e9)
    built = topology([HostBridge(key="pci0000:10"), function, adapter, port])
    assert [link.trained for link in built.links if link.b == "mlx5_0/1"] == [trained]


def test_memory_in_the_tree() -> None:
    text = as_tree(topology([*sockets(XEON, XEON), *gpus(H100)]))
    assert text == (
        f"package0  {XEON[:48]}, interconnect 44.8 GB/s to package1\n"
        "  numa0  memory 204.8 GB/s\n"
        f"package1  {XEON[:48]}\n"
        "  numa1  memory 204.8 GB/s\n"
        "not attached\n"
        "  0000:00:00.0  GPU gpu0, 10de:2330, memory 3350.0 GB/s\n"
    )


odd = st.sampled_from([f"0000:0{n}:00.0" for n in range(6)])
odd_parts = st.builds(
    port,
    odd,
    st.none() | odd | st.just("pci0000:00"),
    st.sampled_from([BRIDGE, GPU, NIC]),
    st.sampled_from([0x1B36, 0x10DE, 0x8086]),
    device=st.none() | st.just(H100),
)
grades = st.none() | st.sampled_from(["pcie3x16", "pcie4x8", "pcie5x16"])


@example(
    parts=[
        port("0000:00:00.0", "0000:02:00.0", BRIDGE, 0x1B36, device=None),
        port("0000:01:00.0", "0000:00:00.0", GPU, 0x10DE, device=None),
        port("0000:02:00.0", "0000:03:00.0", BRIDGE, 0x10DE, device=None),
    ],
    link=None,
    path="pcie3x16",
    nic=None,
    adapters=[],
)
@given(st.lists(odd_parts, max_size=8), grades, grades, grades, st.lists(odd, max_size=2))
def test_any_guest_however_odd(
    parts: list[Pci], link: str | None, path: str | None, nic: str | None, adapters: list[str]
) -> None:
    """A machine type changes only rates and grades of links whose rate cannot be read."""
    facts = [Node(key="node", virtual=True), Numa(key="numa0", cpus=(0,)), *parts]
    facts += [Rdma(key=f"rdma{n}", address=address) for n, address in enumerate(adapters)]
    machine = Machine(name="any", source="x", gpu="H100*", gpu_link=link, gpu_path=path, nic_link=nic)
    without, with_it = topology(facts), topology(facts, machine=machine)

    def bare(one: Link) -> Link:
        return replace(one, rated=None, grade="") if one.trained is None and one.kind != "memory" else one

    assert with_it.devices == without.devices
    assert [bare(one) for one in with_it.links] == list(without.links)
    assert all(one.grade for one in with_it.links if one.rated and one.kind != "port")
    assert {one.grade for one in with_it.links if one.trained is None} <= {"", "hbm", link, path, nic}
