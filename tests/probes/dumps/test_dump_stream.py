"""Results of STREAM: 5.10 and 5.9, without OpenMP, of MPI, of a GPU, cut, and rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import stream
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import means_nothing, split
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
RULE = "-" * 61
TEXT = f"""\
{RULE}
STREAM version $Revision: 5.10 $
{RULE}
This system uses 8 bytes per array element.
{RULE}
Array size = 400000000 (elements), Offset = 0 (elements)
Memory per array = 3051.8 MiB (= 3.0 GiB).
Total memory required = 9155.3 MiB (= 8.9 GiB).
Each kernel will be executed 10 times.
 The *best* time for each kernel (excluding the first iteration)
 will be used to compute the reported bandwidth.
{RULE}
Number of Threads requested = 96
Number of Threads counted = 96
{RULE}
Your clock granularity/precision appears to be 1 microseconds.
Each test below will take on the order of 10900 microseconds.
   (= 10900 clock ticks)
Increase the size of the arrays if this shows that
you are not getting at least 20 clock ticks per test.
{RULE}
WARNING -- The above is only a rough guideline.
For best results, please be sure you know the
precision of your system timer.
{RULE}
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:          571428.6     0.011300     0.011200     0.011500
Scale:         560000.1     0.011500     0.011429     0.011700
Add:           600000.2     0.016100     0.016000     0.016300
Triad:         604000.5     0.016000     0.015894     0.016200
{RULE}
Solution Validates: avg error less than 1.000000e-13 on all three arrays
{RULE}
"""
OLD = f"""\
{RULE}
STREAM version $Revision: 5.9 $
{RULE}
This system uses 8 bytes per DOUBLE PRECISION word.
{RULE}
Array size = 80000000, Offset = 0
Total memory required = 1831.1 MB.
Each test is run 10 times, but only
the *best* time for each is used.
{RULE}
Number of Threads requested = 16
{RULE}
Printing one line per active thread....
Printing one line per active thread....
{RULE}
Your clock granularity appears to be less than one microsecond.
Each test below will take on the order of 16000 microseconds.
{RULE}
Function      Rate (MB/s)   Avg time     Min time     Max time
Copy:       80000.1000       0.0161       0.0160       0.0162
Scale:      79000.2000       0.0163       0.0162       0.0164
Add:        81000.3000       0.0238       0.0237       0.0239
Triad:      82000.4000       0.0235       0.0234       0.0236
{RULE}
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(stream.read(Part("log", 1, text, AT)))


def rate(text: str, number: int, op: str, size: int | None, value: float) -> Observation:
    seen = Evidence(f"log:{number}", text.splitlines()[number - 1].strip())
    return Observation(
        about=Flow(op, ("host",), size),
        quantity="rate",
        unit="bytes_per_second",
        value=value,
        at=AT,
        busy=True,
        evidence=seen,
    )


SIZE = 3_200_000_000
WHOLE = [rate(TEXT, 27, "stream-copy", SIZE, 571428.6e6), rate(TEXT, 30, "triad", SIZE, 604000.5e6)]


def test_a_whole_run() -> None:
    assert said(TEXT) == WHOLE


def test_an_old_version() -> None:
    assert said(OLD) == [
        rate(OLD, 20, "stream-copy", 640_000_000, 80000.1e6),
        rate(OLD, 23, "triad", 640_000_000, 82000.4e6),
    ]


@pytest.mark.parametrize("text", [TEXT, OLD])
def test_the_rules_between_the_blocks_belong_to_it(text: str) -> None:
    parts = [(family, part) for family, part in split("log", text, AT, READERS) if not means_nothing(part)]
    assert [family and family.name for family, _ in parts] == ["stream"]
    assert list(stream.read(parts[0][1])) == said(text)


def test_a_table_alone() -> None:
    text = "\n".join(TEXT.splitlines()[25:30])
    assert said(text) == [rate(text, 2, "stream-copy", None, 571428.6e6), rate(text, 5, "triad", None, 604000.5e6)]


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("Number of Threads requested = 96\nNumber of Threads counted = 96\n" + RULE + "\n", ""),
        TEXT.replace("= 96", "= 1"),
        TEXT.replace("Array size = ", " Total Aggregate Array size = "),
        TEXT.replace("Memory per array", " Data is distributed across 16 MPI ranks\nMemory per array"),
    ],
)
def test_one_thread_and_many_nodes_are_no_measure_of_the_memory(text: str) -> None:
    told = said(text)
    assert [(one.what, one.subject) for one in told if isinstance(one, NotChecked)] == [
        ("rate of stream-copy", "host"),
        ("rate of triad", "host"),
    ]
    assert len(told) == 2


def test_the_memory_of_a_gpu_is_not_the_hosts() -> None:
    head = " STREAM Benchmark implementation in CUDA\n Array size (double)=67108864*8*8 (4096 MB)\n"
    table = "\n".join(OLD.splitlines()[18:23]) + "\n"
    assert said(head + table) == []
    assert [one.value for one in said(head + table + TEXT) if isinstance(one, Observation)] == [
        one.value for one in WHOLE
    ]


def test_cut_at_any_place_it_says_no_other_things() -> None:
    for end in range(len(TEXT)):
        told = list(stream.read(Part("log", 1, TEXT[:end], AT)))
        assert [(one.about, one.value) for one in told if isinstance(one, Observation)] == [
            (one.about, one.value) for one in WHOLE[: len(told)]
        ]


@pytest.mark.parametrize("text", ["", RULE, "Copy: 1.0 0.1 0.1 0.1", "Array size = 5", "Function   Rate", "./stream"])
def test_what_is_no_output(text: str) -> None:
    assert not re.search(stream.BEGIN, text, re.MULTILINE)


words = st.sampled_from([*TEXT.splitlines(keepends=True), *OLD.splitlines(keepends=True), "\n", "1.0", "= 0"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in stream.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(stream.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
