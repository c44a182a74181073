"""lstopo on a terminal and as XML: whole, cut, and of rubbish; recorded machines as sysfs has them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Disk, HostBridge, Net, Node, Numa, Package, Pci, Rdma
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import hwloc_text, hwloc_xml

SHARED = Path(__file__).parents[3].parent / "shared/data"

TEXT = """\
Machine (2015GB total)
  Package L#0
    NUMANode L#0 (P#0 1007GB)
    L3 L#0 (105MB)
      L2 L#0 (2048KB) + L1d L#0 (48KB) + L1i L#0 (32KB) + Core L#0
        PU L#0 (P#0)
        PU L#1 (P#4)
      L2 L#1 (2048KB) + L1d L#1 (48KB) + L1i L#1 (32KB) + Core L#1 + PU L#2 (P#1)
    HostBridge
      PCIBridge
        PCIBridge
          PCI 18:00.0 (3D)
            CoProc(CUDA) "cuda0"
            GPU(NVML) "nvml3"
        PCIBridge
          PCI 0001:19:00.0 (InfiniBand)
            Net "ibs1"
            OpenFabrics "mlx5_0"
      PCI 00:17.0 (Strange)
        Block(Disk) "sda"
  Package L#1
    Group0 L#0
      NUMANode L#1 (P#1 504GB)
      Core L#2 + PU L#3 (P#2)
    Group0 L#1
      NUMANode L#2 (P#2 504GB)
      Core L#3 + PU L#4 (P#3)
    HostBridge
      PCI 81:00.0 (NVMExp)
  Misc(MemoryModule)
"""
SHOWN = [
    Pci(key="0000:18:00.0", pci_class=0x030200, numa=0),
    Gpu(key="gpu3", address="0000:18:00.0"),
    Pci(key="0001:19:00.0", pci_class=0x020700, numa=0),
    Net(key="ibs1", address="0001:19:00.0"),
    Rdma(key="mlx5_0", address="0001:19:00.0"),
    Pci(key="0000:00:17.0", numa=0),
    Disk(key="sda", address="0000:00:17.0"),
    Package(key="package0", cpus=(0, 1, 4)),
    Numa(key="numa0", cpus=(0, 1, 4)),
    Numa(key="numa1", cpus=(2,)),
    Numa(key="numa2", cpus=(3,)),
    Pci(key="0000:81:00.0", pci_class=0x010800),
    Package(key="package1", cpus=(2, 3)),
]
LONG = """\
Machine (P#0 total=32GB DMIProductName=X)
  Package L#0 (P#1 total=16747124KB CPUModel="Some Processor @ 2.70GHz")
    NUMANode L#0 (P#1 local=16747124KB total=16747124KB)
    HostBridge L#0 (buses=0000:[00-06])
      PCIBridge L#1 (busid=0000:00:01.1 id=8086:3c03 class=0604(PCIBridge) buses=0000:[02-02])
        PCI L#0 (busid=0000:02:00.0 id=10de:2330 class=0302(3D) PCISlot=01)
"""
LISTED = [
    HostBridge(key="pci0000:00", numa=1),
    Pci(key="0000:00:01.1", parent="pci0000:00", numa=1, pci_class=0x060400, vendor=0x8086, device=0x3C03),
    Pci(key="0000:02:00.0", parent="0000:00:01.1", numa=1, pci_class=0x030200, vendor=0x10DE, device=0x2330),
    Package(key="package1", model="Some Processor @ 2.70GHz"),
]

XML = """\
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f" nodeset="0x00000003">
    <info name="DMIProductName" value="XE9680"/>
    <info name="HostName" value="node7"/>
    <object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000001">
      <info name="CPUVendor" value="GenuineIntel"/>
      <info name="CPUModel" value="Some Xeon"/>
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" local_memory="1073741824"/>
      <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[00-06]">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_type="0604 [8086:352a] [0000:0000] 04">
          <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1">
            <info name="PCIDevice" value="GH100 [H100 SXM5 80GB]"/>
            <info name="PCISlot" value="7"/>
            <object type="OSDev" name="nvml1" subtype="NVML" osdev_type="1"/>
            <object type="OSDev" name="cuda0" subtype="CUDA" osdev_type="5"/>
          </object>
        </object>
        <object type="PCIDev" pci_busid="0000:00:02.0" pci_type="0207 [15b3:1021] [15b3:0023] 00" pci_link_speed="63.0">
          <object type="OSDev" name="ib0" osdev_type="2"/>
          <object type="OSDev" name="mlx5_0" osdev_type="3"/>
        </object>
        <object type="PCIDev" pci_busid="0000:00:03.0" pci_type="0108 [144d:a80a] [144d:aa0b] 00" pci_link_speed="7.9">
          <object type="OSDev" name="nvme0n1" subtype="Disk" osdev_type="0"/>
        </object>
      </object>
    </object>
    <object type="NUMANode" os_index="1" cpuset="0x0" nodeset="0x00000002" local_memory="4096"/>
  </object>
</topology>
"""
WRITTEN = [
    Package(key="package0", vendor="GenuineIntel", model="Some Xeon", cpus=(0, 1, 2, 3)),
    Numa(key="numa0", cpus=(0, 1, 2, 3), memory=1 << 30),
    HostBridge(key="pci0000:00", numa=0),
    Pci(key="0000:00:01.0", parent="pci0000:00", numa=0, pci_class=0x060400, vendor=0x8086, device=0x352A),
    Pci(
        key="0000:01:00.0",
        parent="0000:00:01.0",
        numa=0,
        pci_class=0x030200,
        vendor=0x10DE,
        device=0x2330,
        subvendor=0x10DE,
        subdevice=0x16C1,
        slot="7",
        name="NVIDIA H100 SXM5 80GB",
    ),
    Gpu(key="gpu1", address="0000:01:00.0"),
    Pci(
        key="0000:00:02.0",
        parent="pci0000:00",
        numa=0,
        pci_class=0x020700,
        vendor=0x15B3,
        device=0x1021,
        subvendor=0x15B3,
        subdevice=0x23,
    ),
    Net(key="ib0", address="0000:00:02.0"),
    Rdma(key="mlx5_0", address="0000:00:02.0"),
    Pci(
        key="0000:00:03.0",
        parent="pci0000:00",
        numa=0,
        pci_class=0x010800,
        vendor=0x144D,
        device=0xA80A,
        subvendor=0x144D,
        subdevice=0xAA0B,
    ),
    Disk(key="nvme0n1", address="0000:00:03.0"),
    Numa(key="numa1", cpus=(), memory=4096),
    Node(key="node", product="XE9680", hostname="node7"),
]
ALL = pytest.mark.parametrize(
    ("family", "text", "facts"), [(hwloc_text, TEXT, SHOWN), (hwloc_text, LONG, LISTED), (hwloc_xml, XML, WRITTEN)]
)


def said(family: ModuleType, text: str) -> list[Record]:
    return list(family.read(Part("dump", 1, text)))


def facts_of(told: list[Record]) -> list[Fact]:
    return [one for one in told if isinstance(one, Fact)]


def plain(told: list[Record]) -> list[Fact]:
    """Without where it stood, and what says nothing of a thing that is told of besides."""
    bare = [replace(one, cites={}) for one in facts_of(told)]
    return [one for one in bare if one not in (Numa(key=one.key), Package(key=one.key))]


def begins(family: ModuleType, text: str) -> int | None:
    found = re.search(family.BEGIN, text, re.MULTILINE)
    return found.start() if found else None


@ALL
def test_all_of_it(family: ModuleType, text: str, facts: list[Fact]) -> None:
    assert begins(family, text) == 0
    assert plain(said(family, text)) == facts


@ALL
def test_each_fact_cites_its_line(family: ModuleType, text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    for one in facts_of(said(family, text)):
        for cite in one.cites.values():
            assert cite.text == lines[int(cite.source.removeprefix("dump:")) - 1].strip()[:200]


@ALL
def test_cut_at_every_line(family: ModuleType, text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    whole = {(type(one), one.key): one for one in facts}
    for end in range(len(lines)):
        for one in plain(said(family, "\n".join(lines[:end]))):
            known = whole[type(one), one.key]
            told = {name for name in one.__slots__ if name != "cites" and getattr(one, name) is not None}
            assert {name: getattr(one, name) for name in told} == {name: getattr(known, name) for name in told}


def test_a_text_that_was_cut_says_so() -> None:
    (end,) = (one for one in said(hwloc_xml, XML[:900]) if isinstance(one, NotChecked))
    assert (end.what, end.subject) == ("dump", "dump")


def test_memory_alone_beside_processors() -> None:
    """Two NUMA nodes in one place: which of them has the CPUs is not told."""
    two = XML.replace(
        '<object type="NUMANode" os_index="0"',
        '<object type="NUMANode" os_index="2" cpuset="0xf"/>\n<object type="NUMANode" os_index="0"',
    )
    nodes = {one.key: one.cpus for one in said(hwloc_xml, two) if isinstance(one, Numa)}
    assert nodes == {"numa2": None, "numa0": None, "numa1": ()}


def test_from_version_3_kinds_of_devices_are_bits() -> None:
    text = XML.replace('version="2.0"', 'version="3.0"')
    for old, new in (("2", "16"), ("3", "48")):
        text = text.replace(f'osdev_type="{old}"/>', f'osdev_type="{new}"/>')
    told = [one for one in said(hwloc_xml, text) if isinstance(one, (Net, Rdma))]
    assert [(type(one), one.key) for one in told] == [(Net, "ib0"), (Rdma, "mlx5_0")]


@pytest.mark.parametrize("mask", ["", "0x", "0xf...f", "0x" + "f" * 99, "-1", "0x1" + ",0x1" * 300])
def test_masks_that_are_none(mask: str) -> None:
    told = said(hwloc_xml, f'<topology><object type="Package" os_index="0" cpuset="{mask}"/></topology>')
    assert plain(told) == []


@given(st.data())
@pytest.mark.parametrize(("family", "text"), [(hwloc_text, TEXT + LONG), (hwloc_xml, XML)])
def test_any_text(family: ModuleType, text: str, data: st.DataObject) -> None:
    lines = st.sampled_from([*text.splitlines(keepends=True), "\n", "  ", "PCI ", "(P#", '"', "<object ", "</object>"])
    mixed = data.draw(st.lists(lines | st.text(max_size=6), max_size=30).map("".join) | st.text())
    begins(family, mixed)
    for one in said(family, mixed):
        assert isinstance(one, (Fact, NotChecked))
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
@pytest.mark.parametrize("family", [hwloc_text, hwloc_xml])
def test_no_other_tool_begins_so(family: ModuleType) -> None:
    paths = [path for path in sorted((SHARED / "outputs").rglob("*")) if path.is_file() and path.suffix != ".tsv"]
    assert [path.name for path in paths if begins(family, path.read_text(errors="replace")) is not None] == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded machines of ../shared are not here")
@pytest.mark.parametrize(
    ("name", "gpus", "functions", "adapters"),
    [("nvidiaDGX2", 16, 84, 0), ("24em64t-2n6c2t-pci", 3, 15, 1), ("40intel64-2g2n4c+pcilocality", 0, 37, 1)],
)
def test_recorded_machines(name: str, gpus: int, functions: int, adapters: int) -> None:
    text = (SHARED / f"hwloc/{name}.xml").read_text()
    told = facts_of(said(hwloc_xml, text[text.index("<topology") :]))
    pci = [one for one in told if isinstance(one, Pci)]
    displays = [one for one in pci if one.vendor == 0x10DE and (one.pci_class or 0) >> 16 == 3]
    assert (len(displays), len(pci), len([one for one in told if isinstance(one, Rdma)])) == (gpus, functions, adapters)
    assert all(one.parent for one in pci)
