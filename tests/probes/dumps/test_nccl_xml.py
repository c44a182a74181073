"""NCCL's topology XML: the file that is written for a node, and the equal node that is read from it."""

from __future__ import annotations

import re
from itertools import count, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.formats.nccl_xml import MOST, as_nccl_xml
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import HostBridge, Node, Numa, Package, Pci, Port, Rdma
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import nccl_topo
from linkgauge.probes.dumps.read import recognise
from tests.support.dump_samples import SAMPLES, text_of
from tests.support.gpu.nccl_paths import paths
from tests.support.nodes.described import ALL, FOLDER, node
from tests.support.nodes.topo_xml import path_types, seen, snapshot_of

# What NCCL's parser accepts (xmlGetNode, xmlGetToken): no prolog, no tabs, one space before each attribute.
LINE = re.compile(r'(  )*<(/[a-z0-9]+|[a-z0-9]+( [a-z_]+="[^"&<>\n]{0,254}"){0,16}/?)>')


def of_facts(*facts: Fact) -> Snapshot:
    return assemble(facts, Site(), 1000.0)


def of_node(name: str) -> Snapshot:
    return read_snapshot(node(name), SOURCES, Site())


def read(text: str) -> list[Record]:
    return list(nccl_topo.read(Part("topo.xml", 1, text, 1000.0)))


SMALL = (
    Package(key="package0", vendor="GenuineIntel"),
    Numa(key="numa0", cpus=tuple(range(36))),
    HostBridge(key="pci0000:15", numa=0),
    Pci(key="0000:15:01.0", parent="pci0000:15", pci_class=0x060400, max_speed=32e9, max_width=16),
    Pci(
        key="0000:16:00.0",
        parent="0000:15:01.0",
        pci_class=0x060400,
        vendor=0x1000,
        device=0xC030,
        max_speed=32e9,
        max_width=16,
        speed=2.5e9,
        width=16,
    ),
    Pci(key="0000:17:00.0", parent="0000:16:00.0", pci_class=0x060400, max_speed=32e9, max_width=16),
    Pci(key="0000:17:01.0", parent="0000:16:00.0", pci_class=0x060400, max_speed=32e9, max_width=16),
    Pci(
        key="0000:18:00.0",
        parent="0000:17:00.0",
        pci_class=0x030200,
        vendor=0x10DE,
        device=0x2330,
        subvendor=0x10DE,
        subdevice=0x16C1,
        max_speed=32e9,
        max_width=16,
        speed=2.5e9,
        width=16,
    ),
    Pci(key="0000:19:00.0", parent="0000:17:01.0", pci_class=0x020700, vendor=0x15B3, max_speed=64e9, max_width=16),
    Pci(key="0000:19:00.1", parent="0000:17:01.0", pci_class=0x020000, physfn="0000:19:00.0"),
    Gpu(key="gpu3", address="0000:18:00.0"),
    *(GpuLink(key=f"gpu3/nvlink{n}", gpu="gpu3", kind="nvlink", active=n > 0, remote_kind="switch") for n in range(18)),
    Rdma(key="mlx5_0", address="0000:19:00.0"),
    Port(key="mlx5_0/1", device="mlx5_0", state="ACTIVE", rate=50e9),
)
WRITTEN = text_of(SAMPLES / "host/nccl_topo/small.xml")


def test_what_is_written() -> None:
    """Rated links although they are at rest, 17 of 18 NVLinks, no virtual function, no ports."""
    assert as_nccl_xml(of_facts(*SMALL)) == WRITTEN


def cited(line: int, *fields: str) -> dict[str, Evidence]:
    return dict.fromkeys(fields, Evidence(f"topo.xml:{line}", WRITTEN.splitlines()[line - 1].strip()[:200]))


LINK, PLACE, NUMBERS = ("max_speed", "max_width"), ("parent", "numa"), ("pci_class", "vendor", "device")
WHOLE = (*NUMBERS, "subvendor", "subdevice", *PLACE)
FAST = Pci(key="", pci_class=0x060400, max_speed=32e9, max_width=16, numa=0)
NVLINK = GpuLink(key="", gpu="gpu3", kind="nvlink", remote_kind="switch", cites=cited(6, "remote"))
READ = [
    Package(key="package0", vendor="GenuineIntel", cites=cited(2, "vendor")),
    Numa(key="numa0", cpus=tuple(range(36)), cites=cited(2, "cpus")),
    HostBridge(key="numa0/pci", numa=0, cites=cited(2, "numa")),
    replace(FAST, key="0000:16:00/port", parent="numa0/pci", cites=cited(3, *LINK, *PLACE, "pci_class")),
    Pci(
        key="0000:16:00.0",
        parent="0000:16:00/port",
        numa=0,
        pci_class=0x060400,
        vendor=0x1000,
        device=0xC030,
        cites=cited(3, *NUMBERS, *PLACE),
    ),
    replace(FAST, key="0000:18:00/port", parent="0000:16:00.0", cites=cited(4, *LINK, *PLACE, "pci_class")),
    Pci(
        key="0000:18:00.0",
        parent="0000:18:00/port",
        numa=0,
        pci_class=0x030200,
        vendor=0x10DE,
        device=0x2330,
        subvendor=0x10DE,
        subdevice=0x16C1,
        cites=cited(4, *WHOLE),
    ),
    Gpu(key="gpu3", address="0000:18:00.0", cites=cited(5, "address")),
    *(replace(NVLINK, key=f"gpu3/nvlink{n}") for n in range(17)),
    replace(FAST, key="0000:19:00/port", parent="0000:16:00.0", cites=cited(9, *LINK, *PLACE, "pci_class")),
    Pci(
        key="0000:19:00.0",
        parent="0000:19:00/port",
        numa=0,
        pci_class=0x020700,
        vendor=0x15B3,
        cites=cited(9, *PLACE, "pci_class", "vendor"),
    ),
    Rdma(key="mlx5_0", address="0000:19:00.0", cites=cited(11, "address")),
    Port(key="mlx5_0/1", device="mlx5_0", rate=50e9, cites=cited(11, "device", "rate")),
]


@pytest.mark.parametrize("name", ALL)
def test_each_node_written_and_read(name: str) -> None:
    """All values of such a file are the same, and so is the file. NCCL can read it and finds the same paths."""
    snapshot = of_node(name)
    text = as_nccl_xml(snapshot)
    again = snapshot_of(text)
    assert again.not_checked == ()
    assert as_nccl_xml(again) == text
    assert seen(again) == seen(snapshot)
    assert [line for line in text.splitlines() if not LINE.fullmatch(line)] == []
    system = ElementTree.fromstring(text)
    assert sum(1 for _ in system.iter()) <= MOST
    assert path_types(again, sorted(seen(again).numa)) == paths(system, bridged=False)


def test_a_node_with_more_than_nccl_takes() -> None:
    """Network devices without RDMA are left out first."""
    plain = [Pci(key=f"0000:40:{n:02x}.0", pci_class=0x020000, parent="pci0000:40") for n in range(255)]
    text = as_nccl_xml(of_facts(*SMALL, *plain))
    assert (text.count('class="0x020000"'), 'name="mlx5_0"' in text) == (0, True)
    assert as_nccl_xml(of_facts(*SMALL, *plain[:200])).count('class="0x020000"') == 200


def test_a_node_without_gpus_and_network_devices() -> None:
    text = as_nccl_xml(of_facts(Numa(key="numa0")))
    assert text == '<system version="1"/>\n'
    assert recognise(text)
    assert read(text) == []


def test_links_that_a_hypervisor_made_up_are_left_to_nccl() -> None:
    """The link that the driver reads from the GPU itself is written."""
    port = Pci(key="0000:10:00.0", parent="pci0000:00", pci_class=0x060400, vendor=0x1B36, max_speed=16e9, max_width=32)
    ends = [
        Pci(key="0000:11:00.0", parent="0000:10:00.0", pci_class=0x030200, vendor=0x10DE, max_speed=2.5e9, max_width=1),
        Pci(key="0000:12:00.0", parent="0000:10:00.0", pci_class=0x020000, vendor=0x15B3, max_speed=2.5e9, max_width=1),
    ]
    gpu = Gpu(key="gpu0", address="0000:11:00.0", pcie_max_speed=32e9, pcie_max_width=16)
    text = as_nccl_xml(of_facts(Node(key="node", virtual=True), port, *ends, gpu))
    links = [
        (e.get("busid"), e.get("link_speed"), e.get("link_width")) for e in ElementTree.fromstring(text).iter("pci")
    ]
    assert links == [("0000:11:00.0", "32.0 GT/s PCIe", "16"), ("0000:12:00.0", None, None)]


def test_amd_gpus_make_a_file_for_rccl() -> None:
    functions = [
        Pci(key=f"0000:{bus}:00.0", pci_class=0x120000, vendor=0x1002, parent="pci0000:00", numa=0) for bus in (10, 20)
    ]
    gpus = [Gpu(key=f"gpu{n}", address=function.key) for n, function in enumerate(functions)]
    links = [
        GpuLink(
            key=f"gpu{a}/xgmi0", gpu=f"gpu{a}", kind="xgmi", active=True, remote=functions[b].key, remote_kind="gpu"
        )
        for a, b in ((0, 1), (1, 0))
    ]
    system = ElementTree.fromstring(as_nccl_xml(of_facts(Numa(key="numa0"), *functions, *gpus, *links)))
    assert system.attrib == {"version": "2"}
    assert [link.attrib for link in system.iter("xgmi")] == [
        {"target": functions[b].key, "count": "1", "tclass": "0x120000"} for b in (1, 0)
    ]


def test_a_file_with_more_elements_than_are_read() -> None:
    text = f'<system version="1"><cpu numaid="0">{"<nic/>" * 6_000}</cpu></system>'
    assert recognise(text)
    *_, last = read(text)
    assert isinstance(last, NotChecked)
    assert last.why == "line 1: more than 5000 elements"


words = st.sampled_from(
    [
        "<cpu>",
        "<cpu numaid='0'>",
        "</cpu>",
        '<pci busid="0000:01:00.0"',
        '<pci busid="0000:02:00.0">',
        ">",
        "/>",
        "</pci>",
        ' link_speed="16 GT/s"',
        ' link_width="-1"',
        ' class="0x03"',
        ' vendor="-"',
        "<gpu>",
        "</gpu>",
        '<gpu dev="0" sm="90">',
        '<nvlink target="0000:02:00.0" count="2" tclass="0x03"/>',
        '<xgmi target="" count=""/>',
        "<nic>",
        "</nic>",
        '<c2c bw="1" count="-1"/>',
        '<net name="a" port="1" speed="x"/>',
        "<net/>",
        "&lt;",
        "<!--",
        "-->",
        "\r",
        "</system>",
    ]
)


@given(st.lists(words | st.text(max_size=5), max_size=40).map("".join))
def test_any_text(inside: str) -> None:
    """Its records can be encoded, make a topology, and the topology can be written."""
    text = f'<system version="1">{inside}'
    assert recognise(text)
    for one in read(text):
        assert decode(encode(one)) == one
    assert recognise(as_nccl_xml(snapshot_of(text)))


@st.composite
def machines(draw: st.DrawFn) -> list[Fact]:
    """One or two NUMA nodes with switches of one or two levels, GPUs and NICs below any of them, and any NVLinks."""
    nodes, buses, gpus = draw(st.integers(1, 2)), count(1), list[str]()
    facts: list[Fact] = [Package(key="package0", vendor="AuthenticAMD", cpus=tuple(range(80)))]
    facts += [Numa(key=f"numa{n}", cpus=tuple(range(40 * n, 40 * n + 40))) for n in range(nodes)]

    def below(parent: str, code: int) -> str:
        """A port and what is below it: the upper end of a switch, a GPU, or a NIC."""
        speed, width = draw(st.sampled_from([8e9, 16e9, 32e9, 64e9])), draw(st.sampled_from([1, 8, 16]))
        port, address = (f"0000:{next(buses):02x}:00.0" for _ in range(2))
        facts.append(Pci(key=port, parent=parent, pci_class=0x060400, max_speed=32e9, max_width=16))
        vendor = 0x15B3 if code == 0x020700 else 0x10DE
        facts.append(Pci(key=address, parent=port, pci_class=code, vendor=vendor, max_speed=speed, max_width=width))
        return address

    for n in range(nodes):
        root = f"pci0000:{n}0"
        facts.append(HostBridge(key=root, numa=n))
        places = [root, *(below(root, 0x060400) for _ in range(draw(st.integers(0, 2))))]
        places += [below(place, 0x060400) for place in places[1:] if draw(st.booleans())]
        gpus += [below(place, 0x030200) for place in places for _ in range(draw(st.integers(0, 2)))]
        for place in draw(st.lists(st.sampled_from(places), max_size=3)):
            name = f"mlx5_{next(buses)}"
            facts.append(Rdma(key=name, address=below(place, 0x020700)))
            facts.append(Port(key=f"{name}/1", device=name, state="ACTIVE", rate=draw(st.sampled_from([None, 25e9]))))
    facts += [Gpu(key=f"gpu{n}", address=address) for n, address in enumerate(gpus)]
    return facts + draw(joined(gpus))


@st.composite
def joined(draw: st.DrawFn, gpus: list[str]) -> list[Fact]:
    """NVLinks from each GPU to switches, to the next GPU in line, or none; some are down."""
    kind, numbers = draw(st.sampled_from(["switch", "gpu", None])), count()
    to_peers = [pair for a, b in pairwise(range(len(gpus))) for pair in ((a, b), (b, a))]
    ends = to_peers if kind == "gpu" else [(n, None) for n in range(len(gpus))] if kind else []
    up = draw(st.sampled_from([0, 3, 4]))  # with fewer, NCCL takes the wider PCIe
    return [
        GpuLink(
            key=f"gpu{a}/nvlink{next(numbers)}",
            gpu=f"gpu{a}",
            kind="nvlink",
            active=n < up,
            remote_kind=kind,
            remote=None if b is None else gpus[b],
        )
        for a, b in ends
        for n in range(4)
    ]


@given(machines())
def test_any_machine_written_and_read(facts: list[Fact]) -> None:
    snapshot = of_facts(*facts)
    text = as_nccl_xml(snapshot)
    again = snapshot_of(text)
    assert as_nccl_xml(again) == text
    assert seen(again) == seen(snapshot)
    assert seen(snapshot).paths == paths(ElementTree.fromstring(text), bridged=False)


def test_on_the_command_line(tmp_path: Path) -> None:
    """From a capture to a file, and from this file to an equal file, alone and in a folder of dumps."""
    capture, first, second = tmp_path / "node.capture", tmp_path / "dumps/topo.xml", tmp_path / "again.xml"
    first.parent.mkdir()
    command = ["topology", "--format", "nccl-xml"]
    for arguments in (
        ["capture", "--synthetic", str(FOLDER / "hgx-h100.toml"), str(capture)],
        [*command, "--from", str(capture), "--output", str(first)],
        [*command, "--from", str(first), "--output", str(second)],
    ):
        assert CliRunner().invoke(main, arguments).exit_code == 0
    assert first.read_text() == second.read_text() == as_nccl_xml(of_node("hgx-h100"))
    folder = CliRunner().invoke(main, [*command, "--from", str(first.parent)])
    assert (folder.exit_code, folder.output) == (0, first.read_text())
    wrong = CliRunner().invoke(main, [*command, "--matrix"])
    assert (wrong.exit_code, "leave out --format nccl-xml" in wrong.output) == (64, True)
