"""`rocm-smi`: JSON, lines, matrices, the concise table, cut, and rubbish."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.amd import rocm_smi
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
JSON = """\
{
    "card0": {
        "VBIOS version": "113-D67301-063",
        "pcie clock level": "1 (16.0GT/s x8)",
        "PCIe Replay Count": "3",
        "PCI Bus": "0000:0C:00.0",
        "VRAM Total Memory (B)": "68702699520",
        "VRAM Total Used Memory (B)": "10960896",
        "Card Series": "AMD Instinct MI210",
        "(Topology) Numa Node": "1"
    },
    "card1": {
        "PCI Bus": "0000:22:00.0",
        "Card series": "0x0c34",
        "PCIe Replay Count": "N/A",
        "(Topology) Numa Node": "-1"
    },
    "system": {
        "Driver version": "6.3.6",
        "(Topology) Weight between DRM devices 0 and 1": "15",
        "(Topology) Hops between DRM devices 0 and 1": "1",
        "(Topology) Link type between DRM devices 0 and 1": "XGMI"
    }
}
"""
TEXT = """\
============================ ROCm System Management Interface ============================
================================ Weight between two GPUs =================================
       GPU0         GPU1         GPU2
GPU0   0            15           30
GPU1   15           0            15
GPU2   30           15           0

================================= Hops between two GPUs ==================================
       GPU0         GPU1         GPU2
GPU0   0            1            2
GPU1   1            0            1
GPU2   2            1            0

=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         XGMI
GPU1   XGMI         0            PCIE
GPU2   XGMI         PCIE         0

======================================= Numa Nodes =======================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[0]\t\t: (Topology) Numa Affinity: 0
GPU 1          : (Topology) Numa Node: 1
================================== End of ROCm SMI Log ===================================
======================================= PCI Bus ID =======================================
GPU[0]\t\t: PCI Bus: 0000:0C:00.0
GPU[0]\t\t: PCIe Replay Count: 2
==========================================================================================
"""
CONCISE = """\
====================================== Concise Info ======================================
Device  Node  IDs              Temp    Power  Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Edge)  (Avg)  (Mem, Compute, ID)
==========================================================================================
0       1     0x74a1,   28851  37.0C   139.0W NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  0%     0%
1       2     0x74a1,   51499  36.0C   139.0W NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  0%     0%
==========================================================================================
GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
2    35.0c           39.0W   300Mhz  1200Mhz  0%   auto  290.0W    0%   0%
"""


def read(text: str) -> list[Record]:
    assert recognise(text)
    return list(rocm_smi.read(Part("log", 1, text, AT)))


def where(number: int, text: str) -> Evidence:
    return Evidence(f"log:{number}", text)


def replays(key: str, value: float, seen: Evidence) -> Observation:
    return Observation(about=key, quantity="pcie_replay", unit="count", value=value, at=AT, evidence=seen)


def card(name: str, value: str, number: int = 2, key: str = "card0") -> Evidence:
    return where(number, f"{key}: {name}: {value}")


def link(gpu: int, remote: str, seen: Evidence) -> GpuLink:
    cites = dict.fromkeys(("gpu", "kind", "active", "remote", "remote_kind"), seen)
    return GpuLink(
        key=f"gpu{gpu}/xgmi0", gpu=f"gpu{gpu}", kind="xgmi", active=True, remote=remote, remote_kind="gpu", cites=cites
    )


def test_json() -> None:
    level, weight = "1 (16.0GT/s x8)", card("(Topology) Weight between DRM devices 0 and 1", "15", 18, "system")
    assert read(JSON) == [
        Gpu(
            key="gpu0",
            name="AMD Instinct MI210",
            address="0000:0c:00.0",
            vbios="113-D67301-063",
            pcie_speed=16e9,
            pcie_width=8,
            memory=68702699520,
            memory_used=10960896,
            numa=1,
            cites={
                "name": card("Card Series", "AMD Instinct MI210"),
                "address": card("PCI Bus", "0000:0C:00.0"),
                "vbios": card("VBIOS version", "113-D67301-063"),
                "pcie_speed": card("pcie clock level", level),
                "pcie_width": card("pcie clock level", level),
                "memory": card("VRAM Total Memory (B)", "68702699520"),
                "memory_used": card("VRAM Total Used Memory (B)", "10960896"),
                "numa": card("(Topology) Numa Node", "1"),
            },
        ),
        Gpu(key="gpu1", address="0000:22:00.0", cites={"address": card("PCI Bus", "0000:22:00.0", 12, "card1")}),
        Driver(key="amdgpu", version="6.3.6", cites={"version": card("Driver version", "6.3.6", 18, "system")}),
        link(0, "0000:22:00.0", weight),
        link(1, "0000:0c:00.0", weight),
        replays("gpu0", 3.0, card("PCIe Replay Count", "3")),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('and 1": "XGMI"', 'and 1": "PCIE"'),
        ('Hops between DRM devices 0 and 1": "1"', 'Hops between DRM devices 0 and 1": "2"'),
    ],
)
def test_pairs_that_no_link_joins(old: str, new: str) -> None:
    assert not [one for one in read(JSON.replace(old, new)) if isinstance(one, GpuLink)]


def test_without_hops_the_weight_tells() -> None:
    text = re.sub(r".*Hops.*\n", "", JSON)
    assert len([one for one in read(text) if isinstance(one, GpuLink)]) == 2
    text = re.sub(r".*(Hops|Weight).*\n", "", JSON)
    assert not [one for one in read(text) if isinstance(one, GpuLink)]


def families(text: str) -> list[str]:
    """Who reads what of a text."""
    return [family.name for family, _ in split("log", text, AT, READERS) if family]


def test_the_text() -> None:
    """All of the matrices are one part, though those of another tool have the same headings."""
    assert families(TEXT) == ["rocm_smi", "rocm_smi"]
    told = [one for family, part in split("log", TEXT, AT, READERS) if family for one in family.read(part)]
    assert [(one.key, one.numa, one.address) for one in told if isinstance(one, Gpu)] == [
        ("gpu0", 0, None),
        ("gpu1", 1, None),
        ("gpu2", None, None),
        ("gpu0", None, "0000:0c:00.0"),
    ]
    assert [one.key for one in told if isinstance(one, GpuLink)] == ["gpu0/xgmi0", "gpu1/xgmi0"]
    assert replays("gpu0", 2.0, where(27, "GPU[0]\t\t: PCIe Replay Count: 2")) in told


def test_the_concise_table() -> None:
    assert set(families(CONCISE)) == {"rocm_smi"}
    told = [one for family, part in split("log", CONCISE, AT, READERS) if family for one in family.read(part)]
    assert told == [Gpu(key="gpu0"), Gpu(key="gpu1"), Gpu(key="gpu2")]


@pytest.mark.parametrize("text", [JSON, TEXT, CONCISE])
def test_cut_at_every_line(text: str) -> None:
    lines = text.splitlines(keepends=True)
    whole = {one.key for one in read(text) if isinstance(one, Gpu | GpuLink | Driver)}
    for end in range(len(lines)):
        told = list(rocm_smi.read(Part("log", 1, "".join(lines[:end]), AT)))
        assert {one.key for one in told if isinstance(one, Gpu | GpuLink | Driver)} <= whole | {"gpu0/xgmi1"}


words = st.sampled_from([*(TEXT + CONCISE + JSON).splitlines(keepends=True), "\n", "GPU1 0 XGMI\n", "}"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in rocm_smi.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


names = st.sampled_from([*json.loads(JSON)["card0"], *json.loads(JSON)["system"]])
values = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["XGMI", "1", "16"])


@given(st.dictionaries(st.sampled_from(["card0", "card1", "system"]), st.dictionaries(names, values, max_size=6)))
def test_any_json(value: object) -> None:
    for one in rocm_smi.read(Part("log", 1, json.dumps(value))):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20 and path.parent.name != "rocm-smi":
            assert not re.search(rocm_smi.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
