"""numactl --hardware, lscpu, /proc/cpuinfo and dmidecode: whole, cut, and of rubbish."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Node, Numa, Package
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import cpu_text, numactl

OUTPUTS = Path(__file__).parents[3].parent / "shared/data/outputs"

NUMACTL = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 1024 MB
node 0 free: 900 MB
node 1 cpus:
node 1 size: 2048 MB
node 1 free: 900 MB
node distances:
node   0   1
  0:  10  32
  1:  32  10
"""
NODES = [
    Numa(key="numa0", cpus=(0, 1, 2, 3), memory=1 << 30, distances={"numa0": 10, "numa1": 32}),
    Numa(key="numa1", cpus=(), memory=2 << 30, distances={"numa0": 32, "numa1": 10}),
]
LSCPU = """\
Architecture:             x86_64
  CPU op-mode(s):         32-bit, 64-bit
CPU(s):                   8
Vendor ID:                GenuineIntel
  Model name:             Intel(R) Xeon(R) Platinum 8480C
    Thread(s) per core:   2
    Core(s) per socket:   2
    Socket(s):            2
    Flags:                fpu vme hypervisor sse
Virtualization features:
  Hypervisor vendor:      Microsoft
NUMA:
  NUMA node(s):           2
  NUMA node0 CPU(s):      0-3
  NUMA node1 CPU(s):      4,5-7
"""
XEON = {"model": "Intel(R) Xeon(R) Platinum 8480C", "vendor": "GenuineIntel"}
SUMMED_UP = [
    Package(key="package0", cores=2, **XEON),  # type: ignore[arg-type]
    Package(key="package1", cores=2, **XEON),  # type: ignore[arg-type]
    Numa(key="numa0", cpus=(0, 1, 2, 3)),
    Numa(key="numa1", cpus=(4, 5, 6, 7)),
    Node(key="node", virtual=True, hypervisor="Microsoft Hyper-V"),
]
CPUINFO = "\n\n".join(
    f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654\nphysical id\t: {cpu // 2}\n"
    f"core id\t\t: {cpu % 2}\nflags\t\t: fpu vme"
    for cpu in range(4)
)
LISTED = [
    Package(key="package0", model="AMD EPYC 9654", vendor="AuthenticAMD"),
    Package(key="package1", model="AMD EPYC 9654", vendor="AuthenticAMD"),
    Node(key="node", virtual=False),
]
DMIDECODE = """\
# dmidecode 3.3
Handle 0x0000, DMI type 0, 26 bytes
BIOS Information
\tVendor: Dell Inc.
\tVersion: 2.3.5
Handle 0x0100, DMI type 1, 27 bytes
System Information
\tManufacturer: Dell Inc.
\tProduct Name: PowerEdge XE9680
\tVersion: Not Specified
Handle 0x0200, DMI type 2, 8 bytes
Base Board Information
\tManufacturer: Dell Inc.
\tProduct Name: 0XYZ
"""
FIRMWARE: list[Fact] = [
    Node(key="node", bios="2.3.5", vendor="Dell Inc.", product="PowerEdge XE9680", board="0XYZ"),
]
ALL = pytest.mark.parametrize(
    ("family", "text", "facts"),
    [
        (numactl, NUMACTL, NODES),
        (cpu_text, LSCPU, SUMMED_UP),
        (cpu_text, CPUINFO, LISTED),
        (cpu_text, DMIDECODE, FIRMWARE),
    ],
)


def said(family: ModuleType, text: str) -> list[Record]:
    return list(family.read(Part("dump", 1, text)))


def plain(told: list[Record]) -> list[Record]:
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in told]


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
    cites = [cite for one in said(family, text) if isinstance(one, Fact) for cite in one.cites.values()]
    assert cites
    for cite in cites:
        assert cite.text == lines[int(cite.source.removeprefix("dump:")) - 1].strip()


@ALL
def test_cut_at_every_line(family: ModuleType, text: str, facts: list[Fact]) -> None:
    """Who calls a machine virtual is the one who read to its end: until then its flags say it."""
    lines = text.splitlines()
    whole = {(type(one), one.key): one for one in facts}
    for end in range(len(lines) + 1):
        for one in said(family, "\n".join(lines[:end])):
            if isinstance(one, NotChecked):
                continue
            assert isinstance(one, Fact)
            known = whole[type(one), one.key]
            assert [getattr(one, name) for name in one.cites] == [getattr(known, name) for name in one.cites]


def test_lscpu_as_json() -> None:
    """Nested since util-linux 2.37, each with its lines below one another or on one."""
    children = [{"field": "Model name:", "data": "EPYC", "children": [{"field": "Socket(s):", "data": "1"}]}]
    fields = [
        {"field": "Vendor ID:", "data": "AuthenticAMD", "children": children},
        {"field": "Flags:", "data": "fpu"},
        {"field": "NUMA node0 CPU(s):", "data": "0-3"},
    ]
    for indent in (None, 3):
        text = json.dumps({"lscpu": fields}, indent=indent)
        assert begins(cpu_text, text) == 0
        assert plain(said(cpu_text, text)) == [
            Package(key="package0", model="EPYC", vendor="AuthenticAMD"),
            Numa(key="numa0", cpus=(0, 1, 2, 3)),
        ]


def test_numbers_that_do_not_fit() -> None:
    assert said(numactl, "node distances:\nnode   0   1\n  0:  10\n") == []
    assert said(numactl, "node 0 cpus: 0 one\nnode 0 size: many MB\n") == []
    assert said(cpu_text, "CPU op-mode(s): 64-bit\nSocket(s): many\nNUMA node0 CPU(s): x\n") == []


def test_a_bare_machine() -> None:
    (node,) = (
        one
        for one in said(cpu_text, LSCPU.replace(" hypervisor", "").replace("Hypervisor vendor", "VT-x"))
        if isinstance(one, Node)
    )
    assert (node.virtual, node.hypervisor) == (False, None)


@given(st.data())
@pytest.mark.parametrize(("family", "text"), [(numactl, NUMACTL), (cpu_text, LSCPU), (cpu_text, CPUINFO + DMIDECODE)])
def test_any_text(family: ModuleType, text: str, data: st.DataObject) -> None:
    lines = st.sampled_from([*text.splitlines(keepends=True), "\n", " ", "node ", "9" * 30, "-1", ":", "0-"])
    mixed = data.draw(st.lists(lines | st.text(max_size=6), max_size=30).map("".join) | st.text())
    begins(family, mixed)
    for one in said(family, mixed):
        assert isinstance(one, Fact | NotChecked)
        assert decode(encode(one)) == one


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
@pytest.mark.parametrize("family", [numactl, cpu_text])
def test_no_other_tool_begins_so(family: ModuleType) -> None:
    paths = [path for path in sorted(OUTPUTS.rglob("*")) if path.is_file() and path.suffix != ".tsv"]
    assert [path.name for path in paths if begins(family, path.read_text(errors="replace")) is not None] == []
