"""Rows of tables without their heading: what their shapes determine is read, and the rest is a gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from random import Random

import pytest

from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.network_paths import NicPath
from linkgauge.models.facts.records import Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps.core.bare_rows import BARE_ROWS, BareRow, bare_row
from linkgauge.probes.dumps.core.shaped_columns import link_widths
from linkgauge.probes.dumps.read import read_text

COUNT = 60  # texts of each kind
PATHS = ("PIX", "PXB", "PHB", "NODE", "SYS")
LINK = ("pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max")


def read(text: str) -> list[Record]:
    return list(read_text("rows.txt", text, 0.0))


def gaps(records: Sequence[Record]) -> list[NotChecked]:
    return [one for one in records if isinstance(one, NotChecked)]


def values(records: Sequence[Record]) -> set[tuple[str, str, str, object]]:
    """The values of all facts. The subject of one without a number is "gpu"."""
    return {
        (type(one).__name__, one.key, name, getattr(one, name))
        for one in records
        if isinstance(one, Fact)
        for name in one.cites
    }


@pytest.mark.parametrize("one", BARE_ROWS, ids=lambda one: str(one.table))
@pytest.mark.parametrize("frame", ["{}", "  {}  ", "We saw this:\n\n{}\n{}\n\nIs it normal?", "```\n{}\n```"])
def test_a_row_alone_is_a_gap_that_names_its_tool_and_the_remedy(one: BareRow, frame: str) -> None:
    assert bare_row(one.example) is one
    records = read(frame.replace("{}", one.example))
    assert not [record for record in records if isinstance(record, Fact | Observation)]
    assert one.how in [gap.how for gap in gaps(records)]


@pytest.mark.parametrize(
    "line", ["GPU 0 has failed", "GPU0", "8 16", "1.0 2.0", "65536 5000", "a, b, c", "tmpfs 64M", "3: eth0: mtu 9000"]
)
def test_other_lines_are_no_rows(line: str) -> None:
    assert bare_row(line) is None


def matrix(chance: Random) -> list[list[str]]:
    """The rows of a matrix of paths with its heading."""
    gpus, nics = chance.choice([2, 4, 8]), chance.choice([0, 1, 4])
    names = [*(f"GPU{one}" for one in range(gpus)), *(f"NIC{one}" for one in range(nics))]
    links = chance.choice(["NV18", "NV4", ""])
    cells: dict[tuple[str, str], str] = {}
    for a, b in permutations(names, 2):
        linked = links and a.startswith("GPU") and b.startswith("GPU")
        cells.setdefault((b, a), cells.setdefault((a, b), links if linked else chance.choice(PATHS)))
    affinities = [chance.choice(["0-47", "0-31,64-95"]), chance.choice(["0", "1", "N/A"]), "", "N/A"]
    rows = [[a, *(cells.get((a, b), " X ") for b in names)] for a in names]
    rows = [[*row, *(affinities if row[0].startswith("GPU") else ())] for row in rows]
    return [["", *names, "CPU Affinity", "NUMA Affinity", "", "GPU NUMA ID"], *rows]


@pytest.mark.parametrize("seed", range(COUNT))
def test_rows_of_paths_give_the_facts_of_the_whole_matrix_or_none(seed: int) -> None:
    chance = Random(seed)
    heading, *rows = matrix(chance)
    whole = values(read("\n".join("\t".join(row) for row in (heading, *rows))))
    first = chance.randrange(len(rows))
    some = rows[first : chance.randint(first + 1, len(rows))]
    between = chance.choice(["\t", " ", "   "])
    records = read(
        "\n".join(between.join(cell.strip() or ("" if between == "\t" else " ") for cell in row) for row in some)
    )
    assert values(records) <= whole
    assert gaps(records)
    if some == rows:
        pairs = {one for one in whole if one[0] in (GpuPair.__name__, NicPath.__name__)}
        assert pairs <= values(records) or not any("NIC" in row[0] or "NV" in row[1] + row[2] for row in rows)


@pytest.mark.parametrize("seed", range(COUNT))
def test_fused_cells_shift_no_others(seed: int) -> None:
    chance = Random(seed)
    heading, *rows = matrix(chance)
    whole = read("\n".join("\t".join(row) for row in (heading, *rows)))
    lines = ["\t".join(heading)]
    for row in rows:
        place = chance.randrange(len(row) - 1)
        lines.append("\t".join([*row[:place], row[place] + row[place + 1], *row[place + 2 :]]))
    records = read("\n".join(lines))
    assert values(records) <= values(whole)
    assert gaps(records) or values(records) == values(whole)


@pytest.mark.parametrize("seed", range(COUNT))
def test_rows_of_a_query_give_the_facts_of_the_whole_table_or_none(seed: int) -> None:
    chance = Random(seed)
    others: dict[str, Callable[[int], str]] = {
        "name": lambda row: "NVIDIA H100 80GB HBM3",
        "uuid": lambda row: f"GPU-{row:08x}-0000-1111-2222-{chance.getrandbits(48):012x}",
        "temperature.gpu": lambda row: str(chance.randrange(20, 90)),
        "memory.used": lambda row: f"{chance.randrange(80_000)} MiB",
        "pstate": lambda row: chance.choice(["P0", "P2"]),
        "ecc.errors.corrected.volatile.total": lambda row: str(chance.choice([0, 1, 4])),
        "count": lambda row: "8",
    }
    names = ["name", *chance.sample([*others][1:], 3)]
    place = chance.randrange(len(names) + 1)
    columns = ["index", *names[:place], *chance.sample(LINK, 4), *names[place:]]
    table = []
    for row in range(chance.choice([1, 2, 8])):
        now = {"index": str(row), LINK[0]: chance.choice("145"), LINK[1]: "5", LINK[2]: chance.choice(["4", "8", "16"])}
        now[LINK[3]] = "16"
        table.append([now.get(name) or others[name](row) for name in columns])
    whole = values(read("\n".join(", ".join(row) for row in (columns, *table))))
    records = read("\n".join(", ".join(row) for row in table))
    assert {one[2:] for one in values(records)} <= {one[2:] for one in whole}
    assert gaps(records)
    pairs = "\n".join(" ".join(f'{name}="{cell}"' for name, cell in zip(columns, row, strict=True)) for row in table)
    assert values(read(pairs)) == whole


@pytest.mark.parametrize(
    ("rows", "widths"),
    [
        (["4 5 8 16"], (2, 3)),
        (["4 8 5 16"], (1, 3)),
        (["16 8 5 4"], (1, 0)),
        (["1 5 16 16", "5 5 8 16"], (2, 3)),
        (["2 1 4 16"], None),  # the width is 4, or 1, or 2
        (["1 1 1 16"], None),  # no GPU in use has only generation 1
        (["5 5 16 16", "0 5 16 16"], None),
        (["8 16"], None),
    ],
)
def test_the_widths_of_links_are_known_beside_their_generations(
    rows: list[str], widths: tuple[int, int] | None
) -> None:
    assert link_widths([row.split() for row in rows]) == widths


def test_a_row_that_does_not_fit_its_table_is_a_gap() -> None:
    title = " RDMA_Write BW Test\n Device : mlx5_0\n"
    heading = " #bytes  #iterations  BW peak[Gb/sec]  BW average[Gb/sec]  MsgRate[Mpps]\n"
    assert not gaps(read(f"{title}{heading} 65536  5000  184.1  183.98  0.350910\n".replace("184.1 ", "184.10 ")))
    fused = read(f"{title}{heading} 65536  5000  184.10183.98  0.350910\n")
    assert [one.value for one in fused if isinstance(one, Observation)] == [183.98e9 / 8]
    for damaged in (f"{heading} 65536  5000184.10  183.98  0.350910\n", " 65536  5000  184.10  183.98\n"):
        records = read(f"{title}{damaged}\nend\n")
        assert gaps(records)
        assert not [one for one in records if isinstance(one, Observation)]


def test_a_row_of_other_numbers_than_those_of_perftest_is_a_gap() -> None:
    assert gaps(read("```\n 65536  5000  184.10  183.98  0.950910\n```"))


def test_the_link_of_lspci_can_be_pairs() -> None:
    (function,) = read("LnkCap: Speed=32GT/s Width=x16\nLnkSta: Speed=32GT/s Width=x4\nNUMA node: 0\n")
    assert isinstance(function, Pci)
    assert (function.width, function.max_width) == (4, 16)


def test_the_command_names_the_columns_of_dcgmi_dmon() -> None:
    records = read("$ dcgmi dmon -e 237,238,230 -c 1\nGPU 0  4  8  N/A\nGPU 1  5  16  79\n")
    widths = {one.key: one.pcie_width for one in records if isinstance(one, Gpu)}
    assert widths == {"gpu0": 8, "gpu1": 16}
