"""Tables of nccl-tests in the forms that versions and launchers give them, whole, cut, and of rubbish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import read_dump, recognise
from linkgauge.probes.dumps.benchmarks import nccl
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.registry import READERS
from linkgauge.probes.host.live import Live

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs/nccl-tests"
AT = 1795230000.0
ROWS = ((8388608, 99.52, 174.16), (536870912, 247.94, 433.90), (17179869184, 276.03, 483.05))

WIDE = "#       size     count    type   redop    root    time   algbw   busbw #wrong    time   algbw   busbw #wrong"
OLD = "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error"
SHORT = "           size    time   algbw   busbw"
TIMED = "#       size         count      type   redop    root  cputime   algbw   busbw #wrong"


def wide(size: int, algorithm: float, bus: float) -> str:
    return f"{size:12} {size // 4:12} float sum -1 {size / 1e6:8.1f} {algorithm:.2f} {bus:.2f} 0 9.9 1.11 2.22 N/A"


def old(size: int, algorithm: float, bus: float) -> str:
    return f"{size:12} {size // 4:12} float sum {size / 1e6:8.1f} {algorithm:.2f} {bus:.2f} 2e-06 9.9 1.11 2.22 2e-06"


def short(size: int, algorithm: float, bus: float) -> str:
    return f"{size:20_} {size / 1e6:8.1f} {algorithm:.2f} {bus:.2f}"


def timed(size: int, algorithm: float, bus: float) -> str:
    return f"{size:12} {size // 4:12} float sum -1 {size / 1e6:8.1f} {algorithm:.2f} {bus:.2f} 0"


def large(size: int, algorithm: float, bus: float) -> str:
    """Numbers have six characters (getFloatStr of nccl-tests), and the time may stand behind them."""
    return f"{size:12} {size // 4:12} float sum -1 1234.5 {algorithm:.1f} {bus:.0f} 0 2026-11-21 10:11:12"


Row = Callable[[int, float, float], str]
FORMS: tuple[tuple[str, Row], ...] = ((WIDE, wide), (OLD, old), (SHORT, short), (TIMED, timed))
UNITS = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 156.742"


def table(heading: str, row: Row, rows: tuple[tuple[int, float, float], ...] = ROWS) -> str:
    return "\n".join(("# nThread 1 nGpus 1", heading, UNITS, *(row(*values) for values in rows), END))


SAMPLES = [table(heading, row) for heading, row in FORMS]


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(nccl.read(Part("dump", 1, text, AT)))


def bandwidths(
    op: str, ranks: int, text: str, first: int, rows: tuple[tuple[int, float, float], ...] = ROWS
) -> list[Observation]:
    """What the rows from the line `first` on should say; the evidence is the line without its prefix."""
    return [
        Observation(
            about=Flow(op, tuple(f"rank{rank}" for rank in range(ranks)), size),
            quantity="bus_bandwidth",
            unit="bytes_per_second",
            value=bus * 1e9,
            at=AT,
            busy=True,
            evidence=Evidence(f"dump:{first + n}", text.splitlines()[first + n - 1].strip()),
        )
        for n, (size, _, bus) in enumerate(rows)
    ]


@pytest.mark.parametrize(("heading", "row"), FORMS)
def test_forms_of_tables(heading: str, row: Row) -> None:
    """The bandwidths out of place, which stand first; the ranks from busbw over algbw."""
    text = table(heading, row)
    assert said(text) == bandwidths("all_reduce", 8, text, 4)


def test_large_rates_and_the_time_of_each_row() -> None:
    rows = ((8388608, 1024.5, 1792.0), (17179869184, 10000.5, 17500.0))
    text = table(f"{TIMED} timestamp          ", large, rows)
    assert said(text) == bandwidths("all_reduce", 8, text, 4, rows)


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "[1,12]<stderr>: ", "0: ", "12:", "    ", "  [1,0]<stdout>:"])
@pytest.mark.parametrize(("heading", "row"), FORMS)
def test_prefixes_of_launchers(prefix: str, heading: str, row: Row) -> None:
    text = table(heading, row)
    assert said("\n".join(prefix + line for line in text.splitlines())) == bandwidths("all_reduce", 8, text, 4)


RANKS = """\
#  Rank  0 Group  0 Pid   6899 on   node-1 device  0 [0000:04:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   6900 on   node-1 device  1 [0009:0b:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid    371 on   node-2 device  0 [0000:05:00] NVIDIA H200
"""
GPUS = [("gpu0", "0000:04:00.0"), ("gpu1", "0009:0b:00.0")]


def test_lines_of_ranks() -> None:
    """They count the ranks, and name the GPUs of the first host: those of others have the same names."""
    text = RANKS + table(WIDE, wide)
    gpus = [
        Gpu(
            key=key,
            name="NVIDIA H100 80GB HBM3",
            address=address,
            cites={"name": Evidence(f"dump:{n}", RANKS.splitlines()[n - 1])},
        )
        for n, (key, address) in enumerate(GPUS, 1)
    ]
    assert said(text) == [*gpus, *bandwidths("all_reduce", 3, text, 7)]


@pytest.mark.parametrize(
    ("line", "address", "name"),
    [
        (
            "#  Rank  0 Pid  21284 on deep device  0 [0000:2f:00.0] AMD Instinct MI100",
            "0000:2f:00.0",
            "AMD Instinct MI100",
        ),
        ("#   Rank  0 Pid 5092 on GENOA-06 device  0 [0x21] NVIDIA GeForce RTX 5090", None, "NVIDIA GeForce RTX 5090"),
        ("0: #  Rank 11 Group  0 Pid 1 on on device 00 [0000:54:00] A100", "0000:54:00.0", "A100"),
    ],
)
def test_forms_of_ranks(line: str, address: str | None, name: str) -> None:
    gpu, *rows = said(f"{line}\n{table(WIDE, wide)}")
    assert isinstance(gpu, Gpu)
    assert (gpu.key, gpu.address, gpu.name) == ("gpu0", address, name)
    assert [one.about for one in rows if isinstance(one, Observation)] == [
        Flow("all_reduce", ("rank0",), r[0]) for r in ROWS
    ]


@pytest.mark.parametrize(
    ("command", "algorithm", "bus", "expected"),
    [
        ("", 100.0, 175.0, ("all_reduce", 8)),
        ("", 100.0, 193.75, ("all_reduce", 32)),
        ("$ mpirun ./build/all_reduce_perf -b 8 -g 1", 100.0, 100.0, ("all_reduce", 2)),
        ("# Collective test starting: all_gather_perf", 100.0, 87.5, ("all_gather", 8)),
        ("./alltoall_perf", 100.0, 96.88, ("alltoall", 32)),
        ("", 100.0, 50.0, ("collective", 2)),
        ("sendrecv_perf", 100.0, 100.0, ("sendrecv", 1)),
        ("", 0.0, 0.0, ("collective", 1)),
        ("all_reduce_perf", 10.0, 0.0, ("all_reduce", 1)),
        ("my_all_reduce_perf", 100.0, 75.0, ("collective", 4)),
        ("", 999999.0, 1999997.99, ("collective", 0)),
        ("", 500000.0, 999999.99, ("all_reduce", 4096)),
    ],
)
def test_which_collective_and_how_many_ranks(
    command: str, algorithm: float, bus: float, expected: tuple[str, int]
) -> None:
    about = {
        o.about
        for o in said(f"{command}\n{table(WIDE, wide, ((1 << 30, algorithm, bus),))}")
        if isinstance(o, Observation)
    }
    ends = tuple(f"rank{rank}" for rank in range(expected[1]))
    assert about == ({Flow(expected[0], ends, 1 << 30)} if ends else set())


@given(st.integers(2, 64), st.floats(100, 500), st.sampled_from(["all_reduce", "all_gather"]))
def test_ranks_from_two_bandwidths(ranks: int, algorithm: float, op: str) -> None:
    bus = algorithm * (ranks - 1) / ranks * (2 if op == "all_reduce" else 1)
    (one,) = said(f"{op}_perf\n{table(WIDE, wide, ((1 << 30, algorithm, bus),))}")
    assert isinstance(one, Observation)
    assert isinstance(one.about, Flow)
    assert (one.about.op, len(one.about.ends)) == (op, ranks)


def test_several_tables_in_one_file() -> None:
    """A sweep over collectives: each table has its own name, ranks and columns."""
    gathered = ((1 << 20, 40.0, 30.0), (1 << 30, 400.0, 300.0))
    parts = (
        f"all_reduce_perf\n{RANKS}{table(WIDE, wide)}\n# Collective test concluded: all_reduce_perf",
        f"# Collective test starting: all_gather_perf\n{table(OLD, old, gathered)}",
    )
    text = "\n".join(parts)
    rows = [one for one in said(text) if isinstance(one, Observation)]
    assert rows == [*bandwidths("all_reduce", 3, text, 8), *bandwidths("all_gather", 4, text, 18, gathered)]


def test_the_largest_size_tells_the_ranks() -> None:
    """Of small ones, the bandwidths have too few digits."""
    for rows in ((8, 0.01, 0.01), (1 << 30, 100.0, 175.0)), ((1 << 30, 100.0, 175.0), (8, 0.01, 0.01)):
        text = table(WIDE, wide, rows)
        assert said(text) == bandwidths("all_reduce", 8, text, 4, rows)


def test_a_name_holds_for_one_table() -> None:
    row = f"{WIDE}\n{wide(1 << 30, 100.0, 175.0)}"
    told = said(f"all_gather_perf\n{row}\nreduce_scatter_perf\n{row}\n{row}")
    ops = [one.about.op for one in told if isinstance(one, Observation) and isinstance(one.about, Flow)]
    assert ops == ["all_gather", "reduce_scatter", "all_reduce"]


def test_a_name_behind_the_table() -> None:
    text = f"{table(WIDE, wide)}\n# Collective test concluded: reduce_scatter_perf"
    assert {one.about.op for one in said(text) if isinstance(one, Observation) and isinstance(one.about, Flow)} == {
        "reduce_scatter"
    }


@pytest.mark.parametrize(("heading", "row"), FORMS)
def test_a_table_that_was_cut(heading: str, row: Row) -> None:
    """Never a number that lacks its last digits."""
    text = table(heading, row)
    whole = [(one.value, one.about) for one in said(text) if isinstance(one, Observation)]
    for end in range(text.index(heading) + len(heading), len(text)):
        part = [(one.value, one.about) for one in said(text[:end]) if isinstance(one, Observation)]
        assert part == whole[: len(part)]
        assert len(part) >= min(len(ROWS), text[:end].count("\n") - 3)


@pytest.mark.parametrize(
    "line",
    [
        "0 0 float sum -1 1 1.0 1.0 0 1 1.0 1.0 0",
        "8 2 float sum -1 1 nan nan 0 1 1.0 1.0 0",
        "8 2 float sum -1 1 inf 1.0 0 1 1.0 1.0 0",
        "8 2 float sum -1 1 -1.0 1.0 0 1 1.0 1.0 0",
        "8 2 float sum -1 1 N/A N/A 0 1 1.0 1.0 0",
        "8 2 float sum -1 1 1.0 1.0 0",
        "x 2 float sum -1 1 1.0 1.0 0 1 1.0 1.0 0",
        "٨ 2 float sum -1 1 1.0 1.0 0 1 1.0 1.0 0",
        "9999999999999999999 2 float sum -1 1 1.0 1.0 0 1 1.0 1.0 0",
        "node:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId a4000",
    ],
)
def test_what_is_no_row(line: str) -> None:
    text = f"{WIDE}\n{wide(*ROWS[0])}\n{line}\n{wide(*ROWS[1])}"
    assert [one.evidence.source for one in said(text) if isinstance(one, Observation)] == ["dump:2", "dump:4"]


@pytest.mark.parametrize("text", ["", "size", "# size time algbw", "# time size algbw busbw", "all_reduce_perf"])
def test_what_is_no_table(text: str) -> None:
    assert not recognise(text)


words = st.sampled_from(
    [WIDE, OLD, SHORT, "#", "size", "time", "algbw", "busbw", "\n", "8", "1.75", "1e999", "-1", "[1,0]<stdout>:", "0:"]
    + [wide(*ROWS[0]), short(*ROWS[1]), "all_gather_perf", *RANKS.splitlines(True), "Rank", "device", "on", "[0x1]"]
)


@given(st.lists(words | st.text(max_size=10), max_size=40).map(" ".join) | st.text())
def test_any_text(text: str) -> None:
    told = list(nccl.read(Part("dump", 1, text, AT)))
    assert recognise(text) or not any(isinstance(one, Observation) for one in told)
    for one in told:
        assert isinstance(one, (Gpu, Observation))
        assert decode(encode(one)) == one


def test_a_folder_of_dumps(tmp_path: Path) -> None:
    """What is in no known form is not checked, and takes nothing else with it."""
    (tmp_path / "a.txt").write_text("nothing")
    (tmp_path / "b.txt").write_text(table(WIDE, wide))
    (tmp_path / "c.txt").mkdir()
    host = Live(str(tmp_path), "dumps")
    read = ", ".join(family.name for family in READERS)
    unknown, *rows, refused = [one for name in ("a.txt", "b.txt", "c.txt") for one in read_dump(name, host)]
    assert unknown == NotChecked(
        what="dump",
        subject="a.txt",
        reason=Reason.UNREADABLE,
        detail=f"in no form that is known here (read are: {read})",
    )
    assert [one.value for one in rows if isinstance(one, Observation)] == [bus * 1e9 for _, _, bus in ROWS]
    assert refused == NotChecked(what="dump", subject="c.txt", reason=Reason.UNREADABLE, detail="Is a directory")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
@pytest.mark.parametrize(
    ("name", "ranks", "rows", "largest"),
    [
        ("aws_p4de_2node_allreduce.txt", 16, 29, 78.33e9),
        ("aws_p5_1node_allreduce.txt", 8, 32, 483.05e9),
        ("stas00_a100_8x_allreduce.txt", 8, 20, 234.89e9),
    ],
)
def test_recorded_outputs(name: str, ranks: int, rows: int, largest: float) -> None:
    told = said((SHARED / name).read_text())
    seen = [one for one in told if isinstance(one, Observation)]
    assert len(seen) == len(told) == rows
    assert seen[-1].value == largest
    assert {one.about.op for one in seen if isinstance(one.about, Flow)} == {"all_reduce"}
    assert {len(one.about.ends) for one in seen if isinstance(one.about, Flow)} == {ranks}
