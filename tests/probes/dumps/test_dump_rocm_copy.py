"""Results of hipBusBandwidth, rocm_bandwidth_test and TransferBench: whole, without devices, cut, and rubbish."""

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
from linkgauge.probes.dumps.benchmarks import rocm_copy
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
BUS = """\
Device:AMD Instinct MI250X Mem=64.0GB #CUs=110 Freq=1700Mhz  MallocMode=pinned
                   test        atts        units        median  mean    stddev  min     max
   H2D_Bandwidth_pinned      +064By       GB/sec        0.0000  0.0000  0.0000  0.0000  0.0000
   H2D_Bandwidth_pinned      +512By       GB/sec        0.0210  0.0209  0.0001  0.0200  0.0212
   H2D_Bandwidth_pinned     65536kB       GB/sec        24.5000 24.1000 0.1000  22.0000 24.6000
         H2D_Timepinned     65536kB           ms        2.7392  2.7400  0.0100  2.7000  3.0000
   D2H_Bandwidth_pinned     65536kB       GB/sec        25.5000 25.1000 0.1000  22.0000 25.6000
 Bidir_Bandwidth_pinned     65536kB       GB/sec        44.0000 43.0000 0.1000  40.0000 44.1000
"""
PEERS = """\
Total no. of  available gpu #3

for gpu#0 AMD Instinct MI250X
    peer2peer supported : gpu#1 
    peer2peer not supported : gpu#2 

                   test        atts        units        median  mean    stddev  min     max
      p2p_uni_gpu0_gpu1     65536kB       GB/sec        48.0000 47.1000 0.1000  45.0000 48.6000
       p2p_bi_gpu0_gpu1     65536kB       GB/sec        90.0000 89.1000 0.1000  85.0000 91.6000
      p2p_uni_gpu2_gpu0     65536kB       GB/sec        9.0000  8.9000  0.1000  8.0000  9.1000
"""  # noqa: W291
ROCM = """\
          RocmBandwidthTest Version: 2.6.0

          Launch Command is: ./rocm-bandwidth-test (rocm_bandwidth -a + rocm_bandwidth -A)


          Device: 0,  AMD EPYC 7763 64-Core Processor
          Device: 1,  AMD Instinct MI210,  GPU-00aa00bb00cc00dd,  c:0.0
          Device: 2,  AMD Instinct MI210,  c8:0.1

          Inter-Device Access

          D/D       0         1         2

          0         1         1         1

          1         1         1         1


          Unidirectional copy peak bandwidth GB/s

          D/D       0           1           2

          0         N/A         26.100      26.200

          1         28.300      1100.200    25.400

          2         28.100      25.500      1101.300


          Bdirectional copy peak bandwidth GB/s

          D/D       0           1           2

          0         N/A         50.000000   52.000000

          1         50.000000   N/A         N/A
"""
BENCH = """\
TransferBench v1.50
===============================================================
Bytes Per Direction 268435456
Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
 SRC+EXE\\DST    CPU 00    CPU 01       GPU 00    GPU 01
  CPU 00  ->     37.62     38.04        39.44     34.00

  GPU 00  ->     55.36     N/A        1618.87     48.83
  GPU 00 min     50.00     N/A        1500.00     40.00
  GPU 01  ->     55.35     54.14        48.89   1860.47
                           CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU
Averages (During UniDir):     37.83     36.72     55.00     48.86
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(rocm_copy.read(Part("log", 1, text, AT)))


def rate(text: str, number: int, flow: Flow, value: float) -> Observation:
    seen = Evidence(f"log:{number}", text.splitlines()[number - 1].strip())
    return Observation(
        about=flow, quantity="rate", unit="bytes_per_second", value=value, at=AT, busy=True, evidence=seen
    )


def both(*ends: str, size: int | None = None) -> Flow:
    return Flow("copy", ends, size, beside=(ends[::-1],))


SIZE = 64 << 20
OF_BUS: list[Record] = [
    rate(BUS, 4, Flow("copy", ("host", "gpu"), 512), 0.021e9),
    rate(BUS, 5, Flow("copy", ("host", "gpu"), SIZE), 24.5e9),
    rate(BUS, 7, Flow("copy", ("gpu", "host"), SIZE), 25.5e9),
    rate(BUS, 8, both("host", "gpu", size=SIZE), 22e9),
]
OF_PEERS: list[Record] = [
    Gpu(key="gpu0", name="AMD Instinct MI250X", cites={"name": Evidence("log:3", "for gpu#0 AMD Instinct MI250X")}),
    rate(PEERS, 8, Flow("copy", ("gpu0", "gpu1"), SIZE), 48e9),
    rate(PEERS, 9, both("gpu0", "gpu1", size=SIZE), 45e9),
    rate(PEERS, 10, Flow("copy", ("gpu2", "gpu0"), SIZE, "host"), 9e9),
    Gpu(key="gpu1"),
    Gpu(key="gpu2"),
]
ONE = Evidence("log:7", "Device: 1,  AMD Instinct MI210,  GPU-00aa00bb00cc00dd,  c:0.0")
OTHER = Evidence("log:8", "Device: 2,  AMD Instinct MI210,  c8:0.1")
NAME = "AMD Instinct MI210"
OF_ROCM: list[Record] = [
    Gpu(key="gpu0", name=NAME, address="0000:0c:00.0", cites={"name": ONE, "address": ONE}),
    Gpu(key="gpu1", name=NAME, address="0000:c8:00.1", cites={"name": OTHER, "address": OTHER}),
    rate(ROCM, 23, Flow("copy", ("numa0", "gpu0")), 26.1e9),
    rate(ROCM, 23, Flow("copy", ("numa0", "gpu1")), 26.2e9),
    rate(ROCM, 25, Flow("copy", ("gpu0", "numa0")), 28.3e9),
    rate(ROCM, 25, Flow("copy", ("gpu0", "gpu1")), 25.4e9),
    rate(ROCM, 27, Flow("copy", ("gpu1", "numa0")), 28.1e9),
    rate(ROCM, 27, Flow("copy", ("gpu1", "gpu0")), 25.5e9),
    rate(ROCM, 34, both("numa0", "gpu0"), 25e9),
    rate(ROCM, 34, both("numa0", "gpu1"), 26e9),
    rate(ROCM, 36, both("gpu0", "numa0"), 25e9),
]
OF_BENCH: list[Record] = [
    rate(BENCH, 8, Flow("copy-sm", ("gpu0", "numa0"), 268435456), 55.36e9),
    rate(BENCH, 8, Flow("copy-sm", ("gpu0", "gpu1"), 268435456), 48.83e9),
    rate(BENCH, 10, Flow("copy-sm", ("gpu1", "numa0"), 268435456), 55.35e9),
    rate(BENCH, 10, Flow("copy-sm", ("gpu1", "numa1"), 268435456), 54.14e9),
    rate(BENCH, 10, Flow("copy-sm", ("gpu1", "gpu0"), 268435456), 48.89e9),
    Gpu(key="gpu0"),
    Gpu(key="gpu1"),
]
ALL = [(BUS, OF_BUS), (PEERS, OF_PEERS), (ROCM, OF_ROCM), (BENCH, OF_BENCH)]


@pytest.mark.parametrize(("text", "whole"), ALL, ids=["bus", "peers", "rocm", "bench"])
def test_a_whole_run(text: str, whole: list[Record]) -> None:
    assert said(text) == whole
    assert {family and family.name for family, _ in split("log", text, AT, READERS)} <= {"rocm_copy", None}


@pytest.mark.parametrize(("text", "whole"), ALL, ids=["bus", "peers", "rocm", "bench"])
def test_cut_at_any_line(text: str, whole: list[Record]) -> None:
    lines = text.splitlines(keepends=True)
    expected = [one for one in whole if isinstance(one, Observation)]
    for end in range(len(lines)):
        told = rocm_copy.read(Part("log", 1, "".join(lines[:end]), AT))
        cut = [one for one in told if isinstance(one, Observation)]
        assert cut == expected[: len(cut)]


def test_unpinned_memory_is_said_once() -> None:
    told = said(BUS.replace("_pinned", "_unpinned"))
    assert [(one.what, one.subject) for one in told if isinstance(one, NotChecked)] == [("rate of copy", "host-gpu")]
    assert len(told) == 1


def test_devices_that_are_not_known_have_no_rates() -> None:
    """A matrix alone; and a list that somebody shortened."""
    assert said(ROCM[ROCM.index("          Unid") :]) == []
    short = ROCM.replace(",  GPU-00aa00bb00cc00dd,  c:0.0", "").replace(",  c8:0.1", "")
    assert said(short) == []


def test_the_receiver_may_copy() -> None:
    text = BENCH.replace("Local read / Remote write", "Remote read / Local write").replace("GFX", "DMA")
    flows = [one.about for one in said(text.replace("SRC+EXE\\DST", "SRC\\EXE+DST")) if isinstance(one, Observation)]
    assert [(flow.op, flow.ends) for flow in flows if isinstance(flow, Flow)] == [
        ("copy", ("numa0", "gpu0")),
        ("copy", ("numa0", "gpu1")),
        ("copy", ("gpu0", "gpu1")),
        ("copy", ("gpu1", "gpu0")),
    ]


@pytest.mark.parametrize(
    "text", ["", "Device: 0, x", "D/D 0 1", "H2D_Bandwidth", "rocm-bandwidth-test", "TransferBench p2p", "test units"]
)
def test_what_is_no_output(text: str) -> None:
    assert not re.search(rocm_copy.BEGIN, text, re.MULTILINE)


lines = [line for text, _ in ALL for line in text.splitlines(keepends=True)]
words = st.sampled_from([*lines, "\n", "N/A", "0.000", " Device: 3, x, 0:0.0", "GPU 00 ->"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in rocm_copy.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_recorded_outputs() -> None:
    name = "superbench-tests/rocm_memory_h2d_bw.log"
    told = [one for one in said((SHARED / name).read_text()) if isinstance(one, Observation)]
    assert len(told) == 18  # two sizes are slower than a smaller one
    assert (told[-1].about, told[-1].value) == (Flow("copy", ("host", "gpu"), 256 << 20), 25.328e9)
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20 and path.name != "rocm_memory_h2d_bw.log":
            assert not re.search(rocm_copy.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
