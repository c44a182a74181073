"""Results of bandwidthTest: its table and its lines, pageable memory, sums, old megabytes, cut, and rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import cuda_bandwidth
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
TEXT = """\
[CUDA Bandwidth Test] - Starting...
Running on...

 Device 2: NVIDIA H100 80GB HBM3
 Range Mode

 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(GB/s)
   1000\t\t\t\t0.5
   32000000\t\t\t55.2

 Device to Host Bandwidth, 1 Device(s)
 PINNED Memory Transfers
 Write-Combined Memory Writes are Enabled   Transfer Size (Bytes)\tBandwidth(GB/s)
   32000000\t\t\t54.9

 Device to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(GB/s)
   32000000\t\t\t2514.4

Result = PASS

NOTE: The CUDA Samples are not meant for performance measurements. Results may vary when GPU Boost is enabled.
"""
LINES = """\
bandwidthTest-H2D-Pinned, Bandwidth = 24.9 GB/s, Time = 0.00128 s, Size = 32000000 bytes, NumDevsUsed = 1
bandwidthTest-D2H-Pinned-WriteCombined, Bandwidth = 26.1 GB/s, Time = 0.00123 s, Size = 32000000 bytes, NumDevsUsed = 1
bandwidthTest-D2D, Bandwidth = 1290.0 GB/s, Time = 0.00002 s, Size = 32000000 bytes, NumDevsUsed = 1
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(cuda_bandwidth.read(Part("log", 1, text, AT)))


def rate(text: str, number: int, ends: tuple[str, str], size: int, value: float) -> Observation:
    seen = Evidence(f"log:{number}", text.splitlines()[number - 1].strip())
    return Observation(
        about=Flow("copy", ends, size),
        quantity="rate",
        unit="bytes_per_second",
        value=value,
        at=AT,
        busy=True,
        evidence=seen,
    )


CITE = Evidence("log:4", "Device 2: NVIDIA H100 80GB HBM3")
WHOLE = [
    Gpu(key="gpu2", name="NVIDIA H100 80GB HBM3", cites={"name": CITE}),
    rate(TEXT, 11, ("host", "gpu2"), 32_000_000, 55.2e9),
    rate(TEXT, 16, ("gpu2", "host"), 32_000_000, 54.9e9),
]


def test_a_whole_run() -> None:
    """Neither what one digit says, nor copies inside the GPU."""
    assert said(TEXT) == WHOLE
    assert [family and family.name for family, _ in split("log", TEXT, AT, READERS)] == ["cuda_bandwidth"]


def test_lines_without_a_table() -> None:
    assert said(LINES) == [
        rate(LINES, 1, ("host", "gpu"), 32_000_000, 24.9e9),
        rate(LINES, 2, ("gpu", "host"), 32_000_000, 26.1e9),
    ]
    assert [one.about for one in said(TEXT + LINES) if isinstance(one, Observation)][2:] == [
        Flow("copy", ("host", "gpu2"), 32_000_000),
        Flow("copy", ("gpu2", "host"), 32_000_000),
    ]


def test_megabytes_of_old_versions() -> None:
    """1024 bytes a millisecond."""
    text = TEXT.replace("Bandwidth(GB/s)", "Bandwidth(MB/s)").replace("55.2", "12068.8").replace("32000000", "33554432")
    told = [one for one in said(text) if isinstance(one, Observation)]
    assert told[0].value == 0.5 * 1.024e6
    assert told[1].about == Flow("copy", ("host", "gpu2"), 33_554_432)
    assert told[1].value == pytest.approx(12.3585e9, rel=1e-5)


def test_pageable_memory_and_sums_are_said_once_each() -> None:
    lost = [one for one in said(TEXT.replace("PINNED", "PAGEABLE")) if not isinstance(one, Gpu)]
    assert [(one.what, one.subject) for one in lost if isinstance(one, NotChecked)] == [
        ("rate of copy", "host-gpu2"),
        ("rate of copy", "gpu2-host"),
    ]
    assert len(lost) == 2
    several = [one for one in said(TEXT.replace("1 Device(s)", "8 Device(s)")) if not isinstance(one, Gpu)]
    assert [one.subject for one in several if isinstance(one, NotChecked)] == ["node", "node"]
    paged = LINES.replace("-Pinned", "-Paged")
    assert [type(one) for one in said(paged)] == [NotChecked, NotChecked]


def test_a_second_run_has_its_own_gpu() -> None:
    again = TEXT.replace("Device 2:", "Device 3:")
    told = [one for one in said(TEXT + again) if isinstance(one, Observation)]
    assert [one.about.ends for one in told if isinstance(one.about, Flow)] == [
        ("host", "gpu2"),
        ("gpu2", "host"),
        ("host", "gpu3"),
        ("gpu3", "host"),
    ]


def test_a_longer_copy_that_is_slower_was_disturbed() -> None:
    """Lines of one direction; the sizes of the next run begin anew."""
    rows = [(20, 12.4), (30, 10.5), (40, 12.4), (50, 12.1), (20, 11.0), (30, 11.5)]
    text = "".join(
        f"bandwidthTest-H2D-Pinned, Bandwidth = {rate} GB/s, Time = 0.00160 s, Size = {size}000000 bytes, "
        "NumDevsUsed = 1\n"
        for size, rate in rows
    )
    told = [one for one in said(text) if isinstance(one, Observation)]
    assert [(one.about.size, one.value) for one in told if isinstance(one.about, Flow)] == [
        (20_000_000, 12.4e9),
        (40_000_000, 12.4e9),
        (20_000_000, 11.0e9),
        (30_000_000, 11.5e9),
    ]


def test_cut_at_any_place_it_says_no_other_things() -> None:
    whole = [(one.about, one.value) for one in WHOLE if isinstance(one, Observation)]
    for end in range(len(TEXT)):
        told = [one for one in cuda_bandwidth.read(Part("log", 1, TEXT[:end], AT)) if isinstance(one, Observation)]
        assert [(one.about, one.value) for one in told] == whole[: len(told)]


@pytest.mark.parametrize(
    "text", ["", "./bandwidthTest", "Host to Device Bandwidth is low", "Device 0: x", "Bandwidth(GB/s)"]
)
def test_what_is_no_output(text: str) -> None:
    assert not re.search(cuda_bandwidth.BEGIN, text, re.MULTILINE)


words = st.sampled_from([*TEXT.splitlines(keepends=True), *LINES.splitlines(keepends=True), "\n", "1.0", "8 Device(s)"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in cuda_bandwidth.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(cuda_bandwidth.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
