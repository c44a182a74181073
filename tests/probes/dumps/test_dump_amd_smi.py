"""`amd-smi`: JSON of several versions, text, tables, cut, and rubbish."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink, GpuPair
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.amd import amd_smi
from linkgauge.probes.dumps.core.part import Part

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
LIST = [
    {"gpu": 0, "bdf": "0000:0C:00.0", "uuid": "c8ff74a1-0000-1000-8000-000000000000", "partition_id": 0},
    {"gpu": 1, "bdf": "0000:22:00.0", "uuid": "N/A", "partition_id": 0},
    {"gpu": 2, "bdf": "0000:22:00.1", "uuid": "N/A", "partition_id": 1},
]
STATIC = {
    "gpu": 0,
    "asic": {"market_name": "AMD Instinct MI300X"},
    "board": {"product_name": "N/A"},
    "bus": {"bdf": "0000:0c:00.0", "max_pcie_width": 16, "max_pcie_speed": {"value": 32, "unit": "GT/s"}},
    "vbios": {"version": "022.040.003.043.000001"},
    "driver": {"name": "amdgpu", "version": "6.12.12"},
    "vram": {"type": "HBM3", "size": {"value": 196592, "unit": "MB"}},
    "numa": {"node": 1, "affinity": 1},
}
METRIC = {
    "gpu": 0,
    "pcie": {"width": 16, "speed": {"value": 16, "unit": "GT/s"}, "bandwidth": "N/A", "replay_count": 7},
    "ecc": {"total_correctable_count": 1, "total_uncorrectable_count": 0},
    "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}},
}


def way(gpu: int, status: str = "ENABLED", kind: str = "XGMI", hops: int = 1, rate: str = "N/A") -> dict[str, object]:
    return {"gpu": gpu, "link_status": status, "link_type": kind, "num_hops": hops, "bandwidth": rate}


TOPOLOGY = [
    {
        "gpu": 0,
        "bdf": "0000:0c:00.0",
        "links": [
            way(0, kind="SELF", hops=0),
            way(1, rate="64000-128000"),
            way(2, "DISABLED", "PCIE", 2),
            way(3, hops=2),
        ],
    },
    {"gpu": 1, "bdf": "0000:22:00.0", "links": [way(0)]},
]
XGMI = {
    "gpu": 1,
    "link_metrics": {
        "max_bandwidth": {"value": 512, "unit": "Gb/s"},
        "link_type": "XGMI",
        "links": [{"gpu": 0, "read": {"value": 1, "unit": "KB"}}, {"gpu": 1, "read": "N/A"}],
    },
    "link_status": ["U", "D", "N/A"],
}
WHERE = Evidence("log:1", "gpu: 0")


def said(*values: object) -> list[Record]:
    text = "\n".join(json.dumps(value, indent=4) for value in values)
    assert recognise(text)
    return list(amd_smi.read(Part("log", 1, text, AT)))


def gpu(**fields: object) -> Gpu:
    return Gpu(key="gpu0", cites=dict.fromkeys(fields, WHERE), **fields)  # type: ignore[arg-type]


def test_a_list() -> None:
    """A partition is no GPU of its own."""
    first, second = said(LIST)
    assert first == gpu(uuid="c8ff74a1-0000-1000-8000-000000000000", address="0000:0c:00.0")
    assert isinstance(second, Gpu)
    assert (second.key, second.address, second.uuid) == ("gpu1", "0000:22:00.0", None)


@pytest.mark.parametrize("static", [[STATIC], {"gpu_data": [STATIC]}])
def test_what_does_not_change(static: object) -> None:
    assert said(static) == [
        gpu(
            name="AMD Instinct MI300X",
            address="0000:0c:00.0",
            vbios="022.040.003.043.000001",
            pcie_max_width=16,
            pcie_own_max_speed=32e9,
            memory=196592 << 20,
            numa=1,
        ),
        Driver(key="amdgpu", version="6.12.12", cites={"version": WHERE}),
    ]


def counted(quantity: str, value: float) -> Observation:
    seen = Evidence("log:1", f"gpu0 {quantity}: {value:.0f}")
    return Observation(about="gpu0", quantity=quantity, unit="count", value=value, at=AT, evidence=seen)


def test_what_changes() -> None:
    counts = [counted("ecc_corrected", 1.0), counted("ecc_uncorrected", 0.0), counted("pcie_replay", 7.0)]
    assert said([METRIC]) == [
        Gpu(
            key="gpu0",
            pcie_speed=16e9,
            pcie_width=16,
            memory_used=283 << 20,
            ecc_corrected=1,
            ecc_uncorrected=0,
            cites={
                **dict.fromkeys(("pcie_speed", "pcie_width", "memory_used"), WHERE),
                "ecc_corrected": counts[0].evidence,
                "ecc_uncorrected": counts[1].evidence,
            },
        ),
        *counts,
    ]


def links(told: list[Record]) -> list[tuple[str, float | None, str | None]]:
    return [(one.key, one.speed, one.remote) for one in told if isinstance(one, GpuLink)]


def test_topology() -> None:
    """As many links as the bandwidth of all is of one; none to those that are reached through others."""
    told = said(TOPOLOGY)
    assert links(told) == [
        ("gpu0/xgmi0", 64e9, "0000:22:00.0"),
        ("gpu0/xgmi1", 64e9, "0000:22:00.0"),
        ("gpu1/xgmi0", None, "0000:0c:00.0"),
    ]
    assert [(one.key, one.read, one.write) for one in told if isinstance(one, GpuPair)] == [
        ("gpu0-gpu1", "ok", "ok"),
        ("gpu0-gpu2", "not supported", "not supported"),
        ("gpu0-gpu3", "ok", "ok"),
    ]


def test_topology_of_the_first_versions() -> None:
    old = {
        "gpu": 0,
        "link_accessibility": {"gpu_0": "ENABLED", "gpu_1": "ENABLED"},
        "weight": {"gpu_0": 0, "gpu_1": 15},
        "hops": {"gpu_1": 1},
        "link_type": {"gpu_0": "SELF", "gpu_1": "XGMI"},
        "numa_bandwidth": {"gpu_1": "50000-50000"},
    }
    assert links(said([old])) == [("gpu0/xgmi0", 50e9, None)]


def test_xgmi() -> None:
    """Ports that it calls down may work: it is kept as text."""
    told = said({"xgmi_metric": [LIST[:1], [XGMI]]})
    assert links(told) == [("gpu1/xgmi0", 64e9, "0000:0c:00.0")]
    (lost,) = (one for one in told if isinstance(one, NotChecked))
    assert (lost.what, lost.subject) == ("GpuLink.active", "gpu1")
    assert lost.why == "log:1: amd-smi does not show as up the xGMI ports 1 of GPU 1"


TEXT = """\
GPU: 0
    BDF: 0000:0c:00.0
    UUID: c8ff74a1-0000-1000-8000-000000000000
    PARTITION_ID: 0

GPU: 1
    BUS:
        BDF: 0000:22:00.0
        MAX_PCIE_WIDTH: 16
        MAX_PCIE_SPEED: 32 GT/s
    PCIE:
        WIDTH: 8
        SPEED: 32 GT/s
    VRAM:
        SIZE: 196592 MB
"""
TABLES = """\
ACCESS TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 ENABLED      DISABLED
0000:22:00.0 ENABLED      ENABLED

WEIGHT TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 0            15
0000:22:00.0 15           0

HOPS TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 0            1
0000:22:00.0 1            0

LINK TYPE TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 SELF         XGMI
0000:22:00.0 XGMI         SELF

NUMA BW TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 N/A          50000-100000
0000:22:00.0 50000-50000  N/A
"""
METRICS = """\
LINK METRIC TABLE:
       bdf          bit_rate max_bandwidth link_type GPU0         GPU1
GPU0   0000:0c:00.0 32 Gb/s  512 Gb/s      XGMI
 Read                                                N/A          2 KB
 Write                                               N/A          1.5 GB
GPU1   0000:22:00.0 32 Gb/s  512 Gb/s      XGMI
 Read                                                1.123 PB     N/A
 Write                                               0 KB         N/A
"""


def read(text: str) -> list[Record]:
    assert recognise(text)
    return list(amd_smi.read(Part("log", 1, text, AT)))


def test_the_text() -> None:
    first, second = read(TEXT)
    assert isinstance(first, Gpu)
    assert isinstance(second, Gpu)
    assert (first.key, first.address, first.uuid) == ("gpu0", "0000:0c:00.0", "c8ff74a1-0000-1000-8000-000000000000")
    known = {name: getattr(second, name) for name in second.cites}
    assert known == {
        "address": "0000:22:00.0",
        "pcie_max_width": 16,
        "pcie_own_max_speed": 32e9,
        "pcie_width": 8,
        "pcie_speed": 32e9,
        "memory": 196592 << 20,
    }
    assert second.cites["pcie_width"] == Evidence("log:6", "gpu: 1")


def test_tables() -> None:
    told = read(TABLES)
    assert links(told) == [
        ("gpu0/xgmi0", 50e9, "0000:22:00.0"),
        ("gpu0/xgmi1", 50e9, "0000:22:00.0"),
        ("gpu1/xgmi0", 50e9, "0000:0c:00.0"),
    ]
    (pair,) = (one for one in told if isinstance(one, GpuPair))
    assert (pair.read, pair.cites["read"]) == ("not supported", Evidence("log:3", TABLES.splitlines()[2]))
    assert links(read(METRICS)) == [("gpu0/xgmi0", 64e9, "0000:22:00.0"), ("gpu1/xgmi0", 64e9, "0000:0c:00.0")]


@pytest.mark.parametrize("text", [TEXT, TABLES, METRICS, json.dumps(TOPOLOGY, indent=1)])
def test_cut_at_every_line(text: str) -> None:
    lines = text.splitlines(keepends=True)
    whole = {one.key for one in read(text) if isinstance(one, Gpu | GpuLink | GpuPair)}
    for end in range(len(lines)):
        told = list(amd_smi.read(Part("log", 1, "".join(lines[:end]), AT)))
        assert {one.key for one in told if isinstance(one, Gpu | GpuLink | GpuPair)} <= whole


words = st.sampled_from([*(TEXT + TABLES + METRICS).splitlines(keepends=True), "\n", '[{"gpu": 0', "}]", "GPU: 7\n"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join))
def test_any_text(text: str) -> None:
    for one in amd_smi.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


names = st.sampled_from(
    [
        *STATIC,
        *METRIC,
        *XGMI,
        "links",
        "link_type",
        "gpu_1",
        "value",
        "unit",
        "bdf",
        "width",
        "speed",
        "version",
        "size",
    ]
)
values = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["XGMI", "D", "16 GT/s", "1-2"])


@given(st.recursive(values, lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=5)))
def test_any_json(value: object) -> None:
    text = json.dumps([{"gpu": 0, "links": value, "link_metrics": value, "pcie": value, "numa": value, "vram": value}])
    for one in amd_smi.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(amd_smi.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
