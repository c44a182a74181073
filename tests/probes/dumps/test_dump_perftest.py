"""Tables of perftest: rates and latencies, units, GPUs, both directions, cut, and of rubbish."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import read_dump, recognise
from linkgauge.probes.dumps.benchmarks import perftest
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS
from linkgauge.probes.host.live import Live
from tests.support.perftest_outputs import LATENCIES, RATES, ROW, RULE, output

SHARED = Path(__file__).parents[4] / "shared"
AT = 1795230000.0
SHORT_ROW = " 2          5000             0.14               0.13               8.412000"


SAMPLES = (
    output("RDMA_Write Bidirectional BW Test", RATES.format("Gb/sec"), SHORT_ROW, ROW),
    output(
        "Send Latency Test", LATENCIES, " 2       1000          0.97           5.22         1.01       1.02 0.0 1.1 2.0"
    ),
)


def said(text: str) -> list[Record]:
    return list(perftest.read(Part("bw.txt", 1, text, AT)))


def seen(text: str, row: str, flow: Flow, value: float, quantity: str = "rate") -> Observation:
    number = text.splitlines().index(row) + 1
    unit = "bytes_per_second" if quantity == "rate" else "seconds"
    return Observation(
        about=flow,
        quantity=quantity,
        unit=unit,
        value=value,
        at=AT,
        busy=True,
        evidence=Evidence(f"bw.txt:{number}", row.strip()),
    )


@pytest.mark.parametrize(
    ("title", "unit", "flow", "value"),
    [
        ("RDMA_Write BW Test", "Gb/sec", Flow("write", ("mlx5_3", "mlx5_3/1"), 65536), 391.85e9 / 8),
        ("RDMA_Write Post List BW Test", "Gb/sec", Flow("write", ("mlx5_3", "mlx5_3/1"), 65536), 391.85e9 / 8),
        ("Send BW Test", "MB/sec", Flow("send", ("mlx5_3", "mlx5_3/1"), 65536), 391.85 * (1 << 20)),
        ("RDMA_Read BW Test", "MiB/sec", Flow("read", ("mlx5_3/1", "mlx5_3"), 65536), 391.85 * (1 << 20)),
        (
            "RDMA_Write Bidirectional BW Test",
            "Gb/sec",
            Flow("write", ("mlx5_3", "mlx5_3/1"), 65536, beside=(("mlx5_3/1", "mlx5_3"),)),
            391.85e9 / 16,
        ),
    ],
)
def test_rates(title: str, unit: str, flow: Flow, value: float) -> None:
    """The average, of one direction."""
    text = output(title, RATES.format(unit), ROW)
    assert recognise(text)
    assert said(text) == [seen(text, ROW, flow, value)]


def test_json() -> None:
    """Of --out_json, which does not tell the unit of the rates."""
    told = {
        "test_info": {"test": "RDMA_Write Bidirectional BW", "Device": "mlx5_3", "Mtu": 4096},
        "results": {"MsgSize": 65536, "n_iterations": 5000, "BW_average": 393.87, "MsgRate": 0.75},
    }
    text = json.dumps(told, indent=1)
    assert recognise(text)
    ends = ("mlx5_3", "mlx5_3/1")
    (one,) = said(text)
    assert one == Observation(
        about=Flow("write", ends, 65536, beside=(ends[::-1],)),
        quantity="rate",
        unit="bytes_per_second",
        value=65536 * 0.75e6 / 2,
        at=AT,
        busy=True,
        evidence=Evidence("bw.txt:1", "MsgSize 65536, MsgRate 0.75"),
    )
    assert isinstance(said(text[:-5])[0], NotChecked)


def test_sizes() -> None:
    text = output("RDMA_Write BW Test", RATES.format("Gb/sec"), SHORT_ROW, ROW)
    small, large = (Flow("write", ("mlx5_3", "mlx5_3/1"), size) for size in (2, 65536))
    assert said(text) == [seen(text, SHORT_ROW, small, 0.13e9 / 8), seen(text, ROW, large, 391.85e9 / 8)]


def test_latencies() -> None:
    row = " 2       1000          0.99           4.31         1.02 \t  1.03        \t0.04   \t\t1.20    \t\t4.31   "
    text = output("RDMA_Write Latency Test", LATENCIES, row)
    assert said(text) == [seen(text, row, Flow("write", ("mlx5_3", "mlx5_3/1"), 2), 1.02e-6, "latency")]


@pytest.mark.parametrize(
    ("listed", "end"),
    [("CUDA device 0: PCIe address is 0A:00\nCUDA device 1: PCIe address is 53:00\n", "0000:53:00.0"), ("", "gpu1")],
)
def test_memory_of_a_gpu(listed: str, end: str) -> None:
    """It is of the test that follows, not of the one after that."""
    before = (
        f"initializing CUDA\nListing all CUDA devices in system:\n{listed}\nPicking device No. 1\n[pid = 7, dev = 1]\n"
    )
    text = before + output("Send BW Test", RATES.format("Gb/sec"), ROW, device="mlx5_0")
    again = output("Send BW Test", RATES.format("Gb/sec"), ROW + " ", device="mlx5_1")
    assert said(text + again) == [
        seen(text, ROW, Flow("send", (end, "mlx5_0/1"), 65536), 391.85e9 / 8),
        seen(text + again, ROW + " ", Flow("send", ("mlx5_1", "mlx5_1/1"), 65536), 391.85e9 / 8),
    ]


def test_the_whole_output_is_one_part(tmp_path: Path) -> None:
    """The rules of dashes in it are not what stands between outputs."""
    waiting = f"{'*' * 36}\n* Waiting for client to connect... *\n{'*' * 36}\n"
    text = waiting + output("RDMA_Write BW Test", RATES.format("Gb/sec"), ROW)
    (tmp_path / "bw.txt").write_text(f"$ ib_write_bw -d mlx5_3 --report_gbits\n{text}")
    told = list(read_dump("bw.txt", Live(str(tmp_path), "dumps")))
    assert [one.about for one in told if isinstance(one, Observation)] == [Flow("write", ("mlx5_3", "mlx5_3/1"), 65536)]
    assert [one.why for one in told if isinstance(one, NotChecked)] in (
        [],
        ["lines 1 are in no form that is known here"],
    )


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        (f"{RATES.format('Gb/sec')}\n{ROW}", "the device"),
        (f"  Device         : mlx5_3\n{RATES.format('Gb/sec')}\n{ROW}", "what was run"),
    ],
)
def test_a_table_without_its_beginning(text: str, lacks: str) -> None:
    assert recognise(text)
    (one,) = said(text)
    assert isinstance(one, NotChecked)
    assert one.why.endswith(f": a table of perftest, and nothing before it says {lacks}")


def test_a_table_without_its_end_hides_nothing() -> None:
    """What follows is told by its own family."""
    text = f"{RULE}\n{RATES.format('Gb/sec')}\n{ROW}\n# nThread 1 nGpus 8\n{RULE}"
    (found,) = re.finditer(perftest.BEGIN, text, re.MULTILINE)
    assert found.end() == text.index(f"\n{ROW}")


def test_rows_that_never_end() -> None:
    """Looking for the end of a table takes no more time than its lines."""
    line = "9 Conflicting CPU freq Conflicting CPU freq"
    text = f"{RATES.format('Gb/sec')}\n" + 2000 * f"{line}\nConflicting CPU {line}\n"
    (found,) = re.finditer(perftest.BEGIN, text, re.MULTILINE)
    assert found[0] == text.split("\n", 1)[0]


def test_an_output_that_was_cut() -> None:
    """Never a number that lacks its last digits."""
    text = output("RDMA_Write BW Test", RATES.format("Gb/sec"), SHORT_ROW, ROW)
    whole = [(one.about, one.value) for one in said(text) if isinstance(one, Observation)]
    for end in range(len(text)):
        told = said(text[:end])
        part = [(one.about, one.value) for one in told if isinstance(one, Observation)]
        assert part == whole[: len(part)]
        assert not any(isinstance(one, NotChecked) for one in told if "the output ends here" not in repr(one))


@pytest.mark.parametrize(
    "row",
    [
        "65536 5000 nan nan 0.1",
        "0 5000 1.00 1.00 0.1",
        "65536 5000 1.00 0.00 0.1",
        "65536 5000 1.00",
        "x 1 1.0 1.0 1.0",
        "65536 5000 1.00 -1.00 0.1",
        "٨ 5000 1.00 1.00 0.1",
        "65536 5000 1.00 1e9 0.1",
    ],
)
def test_what_is_no_row(row: str) -> None:
    assert said(output("Send BW Test", RATES.format("Gb/sec"), row)) == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_hold_none() -> None:
    files = [path for path in SHARED.glob("data/outputs/**/*") if path.is_file() and path.suffix not in (".gz", ".tsv")]
    found = {path.name for path in files if re.search(perftest.BEGIN, path.read_text(errors="replace"), re.MULTILINE)}
    assert found <= {"ib_loopback_all_sizes.log"}  # SuperBench keeps tables of perftest in it


pieces = st.sampled_from(
    [line + "\n" for line in output("Send BW Test", RATES.format("Gb/sec"), ROW, SHORT_ROW).splitlines()]
    + ["Picking device No. 3\n", "BW average[", "#bytes ", "Device : x\n", LATENCIES + "\n", RULE + "\n"]
)


@given(st.lists(pieces | st.text(max_size=8), max_size=30).map("".join) | st.text())
def test_any_text(text: str) -> None:
    re.search(perftest.BEGIN, text, re.MULTILINE)
    for one in said(text):
        assert isinstance(one, Observation | NotChecked)
        assert decode(encode(one)) == one


def test_two_processes_that_write_into_one_file() -> None:
    """A loopback, as SuperBench runs it: each line may stand twice, and the blocks of one within those of the other."""
    rule = "-" * 87 + "\n"
    head = f"{rule}                    RDMA_Write BW Test\nDual-port       : OFF          Device         : ib0\n"
    rest = "ibv_wr* API     : ON\nMtu             : 4096[B]\nData ex. method : Ethernet\n"
    text = (
        f"{head}{head}{rest}{rule}{rest}{rule}{rule}{RATES.format('MB/sec')}\n{RATES.format('MB/sec')}\n{ROW}\n{rule}"
    )
    ((family, part),) = [(family, part) for family, part in split("f", text, AT, READERS) if family]
    assert (family and family.name) == "perftest"
    told = [one for one in perftest.read(part) if isinstance(one, Observation)]
    assert [one.about for one in told] == [Flow("write", ("ib0", "ib0/1"), 65536)]
