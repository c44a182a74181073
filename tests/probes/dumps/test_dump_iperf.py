"""iperf3: text and JSON, both directions, several streams, cut, and of rubbish."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import iperf
from linkgauge.probes.dumps.core.part import Part

SHARED = Path(__file__).parents[4] / "shared"
AT = 1795230000.0
HEADING = "[ ID] Interval           Transfer     Bitrate         Retr"
ONE = f"""\
Connecting to host 192.0.2.6, port 5201
[  5] local 192.0.2.7 port 40000 connected to 192.0.2.6 port 5201
{HEADING}  Cwnd
[  5]   0.00-1.00   sec  2.70 GBytes  23.2 Gbits/sec    0   1.5 MBytes
[  5]   1.00-2.00   sec  2.73 GBytes  23.4 Gbits/sec    0   1.5 MBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
{HEADING}
[  5]   0.00-2.00   sec  5.43 GBytes  23.3 Gbits/sec    0             sender
[  5]   0.00-2.04   sec  5.43 GBytes  22.9 Gbits/sec                  receiver

iperf Done.
"""
SUMS = """\
[  5]   0.00-2.00   sec  1.00 GBytes  4.00 Gbits/sec    0             sender
[  7]   0.00-2.00   sec  1.00 GBytes  4.00 Gbits/sec                  receiver
[SUM]   0.00-2.00   sec  2.00 GBytes  8.10 Gbits/sec    3             sender
[SUM]   0.00-2.00   sec  2.00 GBytes  800 Mbits/sec                  receiver
"""
OUT, IN = ("host", "network"), ("network", "host")


def said(text: str) -> list[Record]:
    return list(iperf.read(Part("iperf.txt", 1, text, AT)))


def rate(value: float, where: Evidence, ends: tuple[str, ...] = OUT, op: str = "tcp") -> Observation:
    return Observation(
        about=Flow(op, ends), quantity="rate", unit="bytes_per_second", value=value, at=AT, busy=True, evidence=where
    )


def line(text: str, number: int) -> Evidence:
    return Evidence(f"iperf.txt:{number}", text.splitlines()[number - 1].strip())


def test_one_stream() -> None:
    """What arrived, as the receiver counted it."""
    assert recognise(ONE)
    assert said(ONE) == [rate(22.9e9 / 8, line(ONE, 9))]


def test_several_streams() -> None:
    text = f"Connecting to host node-2, port 5201\n{HEADING}\n{SUMS}"
    assert said(text) == [rate(800e6 / 8, line(text, 6))]
    assert said(text.replace("SUM]   0.00-2.00   sec  2.00 GBytes  800 M", "SUM] x ")) == [
        rate(8.1e9 / 8, line(text, 5))
    ]


@pytest.mark.parametrize(
    ("begun", "ends"),
    [
        ("Connecting to host x, port 5201", OUT),
        ("Connecting to host x, port 5201\nReverse mode, remote host x is sending", IN),
        ("Accepted connection from 192.0.2.7, port 40000", IN),
    ],
)
def test_who_sends(begun: str, ends: tuple[str, ...]) -> None:
    text = f"{begun}\n{SUMS}"
    assert said(text) == [rate(800e6 / 8, line(text, len(text.splitlines())), ends)]


def test_datagrams() -> None:
    text = f"Connecting to host x, port 5201\n{HEADING[:-4]}Jitter    Lost/Total Datagrams\n{SUMS}"
    assert [one.about for one in said(text) if isinstance(one, Observation)] == [Flow("udp", OUT)]


def test_tests_one_after_the_other() -> None:
    """One that has no sums was not done."""
    failed = "Connecting to host x, port 5201\n"
    lost, done = said(failed + ONE)
    assert isinstance(lost, NotChecked)
    assert lost.why == "iperf.txt:1: a test of iperf3 without the sums at its end"
    assert done == rate(22.9e9 / 8, line(failed + ONE, 10))


def as_json(**end: object) -> str:
    begun = {"connected": [], "test_start": {"protocol": "TCP", "reverse": 0}}
    return json.dumps({"start": begun, "intervals": [], "end": end}, indent="\t")


SENT, RECEIVED = {"bits_per_second": 9.5e9}, {"bits_per_second": 9.25e9}
SAMPLES = (ONE + SUMS, as_json(sum_sent=SENT, sum_received=RECEIVED))


def test_json() -> None:
    where = Evidence("iperf.txt:1", "bits_per_second 9.25e+09")
    text = as_json(sum_sent=SENT, sum_received=RECEIVED)
    assert recognise(text)
    assert said(text) == said(f"{text}\niperf3: interrupt") == [rate(9.25e9 / 8, where)]
    first, second = said(f"{text}\n{text}")
    assert (first, second) == (
        rate(9.25e9 / 8, where),
        rate(9.25e9 / 8, Evidence(f"iperf.txt:{text.count(chr(10)) + 2}", where.text)),
    )
    assert said(text.replace('"reverse": 0', '"reverse": 1')) == [rate(9.25e9 / 8, where, IN)]
    assert said(text.replace("TCP", "UDP")) == [rate(9.25e9 / 8, where, OUT, "udp")]
    assert said(as_json(sum_sent=SENT)) == [rate(9.5e9 / 8, Evidence("iperf.txt:1", "bits_per_second 9.5e+09"))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (as_json(sum_sent=SENT)[:-3], "a text of JSON that is cut or broken"),
        (as_json(), "no rate in it"),
        (as_json(sum_sent={"bits_per_second": 0}), "no rate in it"),
        (as_json(sum_sent={"bits_per_second": "9"}, sum_received=[1]), "no rate in it"),
        (as_json(sum_sent={"bits_per_second": float("nan")}), "no rate in it"),
        (as_json()[:-1] + ', "error": "unable to connect"}', "unable to connect"),
        (as_json()[:-1] + ', "x": ' + "[" * 100_000, "a text of JSON that is cut or broken"),
    ],
)
def test_json_without_a_rate(text: str, why: str) -> None:
    how = "let the test end, and keep all of it"
    assert said(text) == [
        NotChecked(
            what="Observation", subject="node", reason=Reason.UNREADABLE, path="iperf.txt:1", detail=why, how=how
        )
    ]


def test_an_output_that_was_cut() -> None:
    """Never a number that lacks its last digits."""
    for end in range(len(ONE)):
        values = [one.value for one in said(ONE[:end]) if isinstance(one, Observation)]
        assert values in ([], [23.3e9 / 8], [22.9e9 / 8])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_hold_none() -> None:
    files = [path for path in SHARED.glob("data/outputs/**/*") if path.is_file() and path.suffix not in (".gz", ".tsv")]
    found = [path.name for path in files if re.search(iperf.BEGIN, path.read_text(errors="replace"), re.MULTILINE)]
    assert found == []


pieces = st.sampled_from([row + "\n" for row in (ONE + SUMS).splitlines()] + [as_json(sum_sent=SENT), '{"start": {"'])


@given(st.lists(pieces | st.text(max_size=8), max_size=20).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, Observation | NotChecked)
        assert decode(encode(one)) == one
