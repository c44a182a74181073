"""Described machines that are published: what hangs where, how near things are, and what bytes get."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Numa, Pci
from linkgauge.models.facts.merge import Facts, merge, of
from linkgauge.models.facts.records import Fact
from linkgauge.models.graph.path_types import paths
from linkgauge.models.graph.topology import Topology
from linkgauge.probes.gpu.amd_kfd import read_kfd
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.pcie.links import read_pci_links
from linkgauge.probes.pcie.pci import read_pci
from linkgauge.probes.synthetic.build import build
from linkgauge.probes.system.numa import read_numa
from tests.support.nodes.described import found, node, report_of
from tests.support.nodes.large_node import large


def functions(machine: Recorded) -> dict[str, Pci]:
    records = (*read_pci(machine), *read_pci_links(machine))
    facts: Facts = merge(one for one in records if isinstance(one, Fact))[0]
    return dict(of(facts, Pci))


def numas(name: str) -> list[Numa]:
    return [one for one in read_numa(node(name)) if isinstance(one, Numa)]


def path(topology: Topology, one: str, other: str) -> str:
    """As in the matrix."""
    a, b = topology.by_name[one].id, topology.by_name[other].id
    return paths(topology, a, [b])[b].type


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        (
            "p5-tree",
            {
                "53:00.0": 0,
                "64:00.0": 0,
                "75:00.0": 0,
                "86:00.0": 0,
                "97:00.0": 1,
                "a8:00.0": 1,
                "b9:00.0": 1,
                "ca:00.0": 1,
            },
        ),
        (
            "p4d",
            {
                "10:1c.0": 0,
                "10:1d.0": 0,
                "20:1c.0": 0,
                "20:1d.0": 0,
                "90:1c.0": 1,
                "90:1d.0": 1,
                "a0:1c.0": 1,
                "a0:1d.0": 1,
            },
        ),
        (
            "gcp-a3-mega",
            {
                "04:00.0": 0,
                "05:00.0": 0,
                "0b:00.0": 0,
                "0c:00.0": 0,
                "84:00.0": 1,
                "85:00.0": 1,
                "8b:00.0": 1,
                "8c:00.0": 1,
            },
        ),
        (
            "oci-h100",
            {
                "0f:00.0": 0,
                "2d:00.0": 0,
                "44:00.0": 0,
                "5b:00.0": 0,
                "89:00.0": 1,
                "a8:00.0": 1,
                "c0:00.0": 1,
                "d8:00.0": 1,
            },
        ),
        ("perlmutter", {"03:00.0": 3, "41:00.0": 2, "82:00.0": 1, "c1:00.0": 0}),
        (
            "mi300x",
            {
                "0c:00.0": 0,
                "15:00.0": 0,
                "1e:00.0": 0,
                "69:00.0": 0,
                "9f:00.0": 1,
                "af:00.0": 1,
                "bf:00.0": 1,
                "df:00.0": 1,
            },
        ),
        (
            "xe9680",
            {
                "19:00.0": 0,
                "3b:00.0": 0,
                "4c:00.0": 0,
                "5d:00.0": 0,
                "9b:00.0": 1,
                "bb:00.0": 1,
                "cb:00.0": 1,
                "db:00.0": 1,
            },
        ),
    ],
)
def test_gpus_have_the_addresses_that_are_published(name: str, gpus: dict[str, int]) -> None:
    accelerators = (0x030200, 0x120000)
    read = {f.key: f.numa for f in functions(node(name)).values() if f.pci_class in accelerators}
    assert read == {f"0000:{address}": numa for address, numa in gpus.items()}


def test_a_guest_of_hyper_v_has_a_domain_for_each_device() -> None:
    gpus = {f.key: f.numa for f in functions(node("azure-nd-a100-v4")).values() if f.pci_class == 0x030200}
    numbers = {1: 1, 2: 1, 3: 0, 4: 0, 11: 3, 12: 3, 13: 2, 14: 2}
    assert gpus == {f"{domain:04x}:00:00.0": numa for domain, numa in numbers.items()}
    nic = functions(node("azure-nd-h100-v5"))["0101:00:00.0"]
    assert (nic.parent, nic.driver, nic.speed, nic.width, nic.lost) == ("pci0101:00", "mlx5_core", None, None, False)
    gpu = functions(node("azure-nd-h100-v5"))["000c:00:00.0"]
    assert (gpu.parent, gpu.speed, gpu.width) == ("pci000c:00", 32e9, 16)


@pytest.mark.parametrize(
    ("name", "gpu", "nics", "paths"),
    [
        ("p5-tree", "gpu0", [f"efa_{n}" for n in range(32)], {"PIX": 4, "NODE": 12, "SYS": 16}),
        ("oci-h100", "gpu0", [f"mlx5_{n}" for n in range(18)], {"PXB": 2, "NODE": 7, "SYS": 9}),
        ("mi300x", "gpu0", [f"mlx5_{n}" for n in range(10)], {"PXB": 1, "NODE": 3, "SYS": 6}),
        ("p4d", "gpu0", [f"efa_{n}" for n in range(4)], {"PHB": 1, "NODE": 1, "SYS": 2}),
        ("azure-nd-a100-v4", "gpu0", [f"mlx5_{n}" for n in range(8)], {"NODE": 2, "SYS": 6}),
    ],
)
def test_nics_are_as_near_as_they_hang(name: str, gpu: str, nics: list[str], paths: dict[str, int]) -> None:
    topology = report_of(node(name)).topology
    assert Counter(path(topology, gpu, nic) for nic in nics) == paths


@pytest.mark.parametrize(
    ("name", "gpus", "links"),
    [
        ("perlmutter", 4, "NV4"),
        ("gh200-quad", 4, "NV6"),
        ("p5-tree", 8, "NV18"),
        ("azure-nd-a100-v4", 8, "NV12"),
        ("p4d", 8, "NV12"),
        ("mi300x", 8, "XGMI"),
    ],
)
def test_all_gpus_are_joined_alike(name: str, gpus: int, links: str) -> None:
    topology = report_of(node(name)).topology
    names = [f"gpu{number}" for number in range(gpus)]
    assert {path(topology, a, b) for a in names for b in names if a != b} == {links}


def test_the_uplink_of_a_switch_on_p5_is_four_times_slower_than_the_links_below_it() -> None:
    links = report_of(node("p5-tree")).topology.link_below
    rates = {below: round(links[f"0000:{below}"].rated or 0, -7) for below in ("45:00.0", "53:00.0", "52:00.0")}
    assert rates == {"45:00.0": 15.75e9, "53:00.0": 63.02e9, "52:00.0": 63.02e9}
    assert links["0000:53:00.0"].a == "0000:46:0c.0"


def test_a_card_with_a_switch_of_its_own_hangs_below_its_ports() -> None:
    tree = functions(node("mi300x"))
    above, address = ["0000:0c:00.0"], "0000:0c:00.0"
    while (address := tree[address].parent or "") in tree:
        above.append(address)
    assert above == [
        "0000:0c:00.0",
        "0000:0b:00.0",
        "0000:0a:00.0",
        "0000:09:00.0",
        "0000:08:00.0",
        "0000:06:01.0",
        "0000:05:00.0",
        "0000:04:01.0",
    ]
    assert len(list(read_kfd(node("mi300x")))) == 8 + 8 * 7


def test_a_dell_server_has_102_functions_with_a_link() -> None:
    """The naive rule (runs below its own maximum) would find what is healthy."""
    tree = functions(node("xe9680"))
    linked = {address: f for address, f in tree.items() if f.max_width}
    assert len(linked) == 102
    assert linked.keys() == {address for address, f in tree.items() if f.width}
    below = {a for a, f in linked.items() if (f.speed or 0) < (f.max_speed or 0) or (f.width or 0) < (f.max_width or 0)}
    assert len(below) == 16
    assert (linked["0000:81:00.1"].width, linked["0000:81:00.1"].max_width) == (2, 16)
    assert found(report_of(node("xe9680"))) == []


def test_each_superchip_has_the_memory_of_its_gpu_nearest() -> None:
    read = {one.key: one for one in numas("gh200-quad")}
    assert len(read) == 36
    assert {key for key, one in read.items() if one.cpus} == {"numa0", "numa1", "numa2", "numa3"}
    gpu_memory = {key: one.distances for key, one in read.items() if one.memory and not one.cpus}
    nearest = {key: min(range(4), key=lambda n: (found or {})[f"numa{n}"]) for key, found in gpu_memory.items()}
    assert nearest == {"numa4": 0, "numa12": 1, "numa20": 2, "numa28": 3}
    links = report_of(node("gh200-quad")).topology.links
    assert Counter(link.kind for link in links if link.kind in ("nvlink", "c2c")) == {"nvlink": 36, "c2c": 40}


@given(st.integers(1, 200))
@pytest.mark.slow
def test_a_large_node_has_as_many_functions_as_it_is_asked_for(number: int) -> None:
    assert len(build(large(number)).list("sys/bus/pci/devices")) == number


def test_a_node_of_a_thousand_functions_is_healthy() -> None:
    machine = build(large(1000))
    assert len(machine.list("sys/bus/pci/devices")) == 1000
    report = report_of(machine)
    assert {one.severity for one in report.findings} <= {"info"}
    kinds = Counter(device.kind for device in report.topology.devices)
    assert (kinds["gpu"], kinds["nic"], kinds["root-port"]) == (8, 8, 38)
