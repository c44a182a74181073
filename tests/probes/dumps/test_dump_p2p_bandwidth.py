"""Results of p2pBandwidthLatencyTest: one and both directions, with and without peer access, cut, and rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import p2p_bandwidth
from linkgauge.probes.dumps.core.part import Part

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
TEXT = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA H100 80GB HBM3, pciBusID: c3, pciDeviceID: 0, pciDomainID:1
Device=0 CAN Access Peer Device=1
Device=1 CAN Access Peer Device=0

P2P Connectivity Matrix
     D\\D     0     1
     0\t     1     1
     1\t     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 2474.76  37.20
     1  36.36 2512.44
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 2494.76 376.65
     1 371.02 2512.44
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 2494.76 746.00
     1 750.00 2512.44
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   1.59  15.33
     1  20.72   1.82
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(p2p_bandwidth.read(Part("log", 1, text, AT)))


def line(number: int) -> Evidence:
    return Evidence(f"log:{number}", TEXT.splitlines()[number - 1].strip())


def rate(number: int, ends: tuple[str, str], value: float, via: str = "", both: bool = False) -> Observation:
    flow = Flow("copy", ends, via=via, beside=(ends[::-1],) if both else ())
    return Observation(
        about=flow, quantity="rate", unit="bytes_per_second", value=value, at=AT, busy=True, evidence=line(number)
    )


OUT, BACK = ("gpu0", "gpu1"), ("gpu1", "gpu0")
NAME = "NVIDIA H100 80GB HBM3"
WHOLE = [
    Gpu(key="gpu0", name=NAME, address="0000:1b:00.0", cites={"name": line(2), "address": line(2)}),
    Gpu(key="gpu1", name=NAME, address="0001:c3:00.0", cites={"name": line(3), "address": line(3)}),
    rate(13, OUT, 37.2e9, "host"),
    rate(14, BACK, 36.36e9, "host"),
    rate(17, OUT, 376.65e9),
    rate(18, BACK, 371.02e9),
    rate(21, OUT, 373e9, both=True),
    rate(22, BACK, 375e9, both=True),
]


def test_a_whole_run() -> None:
    assert said(TEXT) == WHOLE


def test_cut_at_any_place_it_says_no_other_things() -> None:
    for end in range(len(TEXT)):
        told = [one for one in p2p_bandwidth.read(Part("log", 1, TEXT[:end], AT)) if isinstance(one, Observation)]
        whole = [(one.about, one.value) for one in WHOLE if isinstance(one, Observation)]
        assert [(one.about, one.value) for one in told] == whole[: len(told)]


def test_peers_that_read() -> None:
    """A row receives."""
    text = TEXT.replace("(P2P Writes)", "(P2P Reads)")
    told = [(one.about, one.value) for one in said(text) if isinstance(one, Observation)]
    assert told[2:4] == [(Flow("copy", BACK), 376.65e9), (Flow("copy", OUT), 371.02e9)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Device=0 CAN Access", "Device=0 CANNOT Access"),
        ("     0\t     1     1\n", "     0\t     1     0\n"),
    ],
)
def test_pairs_without_access_copy_through_the_host(old: str, new: str) -> None:
    told = [one for one in said(TEXT.replace(old, new)) if isinstance(one, Observation)]
    assert [(one.about.ends, one.about.via) for one in told[2:] if isinstance(one.about, Flow)] == [
        (OUT, "host"),
        (BACK, ""),
        (OUT, "host"),
        (BACK, ""),
    ]


def test_an_excerpt_without_devices() -> None:
    """Indented, and with fewer columns than rows."""
    text = (
        "  Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D   0   1\n    2 5.00  6.00\n# more"
    )
    told = said(text)
    assert [one.about for one in told if isinstance(one, Observation)] == [
        Flow("copy", ("gpu2", "gpu0")),
        Flow("copy", ("gpu2", "gpu1")),
    ]
    assert [one.key for one in told if isinstance(one, Gpu)] == ["gpu2", "gpu0", "gpu1"]


@pytest.mark.parametrize("text", ["", "P2P", "Bandwidth Matrix (GB/s)", "./p2pBandwidthLatencyTest", "Device: 0, x"])
def test_what_is_no_output(text: str) -> None:
    assert not re.search(p2p_bandwidth.BEGIN, text, re.MULTILINE)


words = st.sampled_from([*TEXT.splitlines(keepends=True), "\n", " 0 ", "1.00", "N/A", "D\\D", "Device=0 CANNOT Access"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in p2p_bandwidth.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(p2p_bandwidth.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
