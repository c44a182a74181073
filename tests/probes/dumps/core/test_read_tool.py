"""Outputs that the engine reads by the description of a tool."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.read_tool import read_rows, read_tool, through_host
from linkgauge.probes.dumps.core.tables import Case, Line, Table, Tool

ENDS = ("gpu{gpu}", "gpu{to_gpu}")
MATRIX = Tool(
    lines=(
        Line(r"(?P<title>Rates)", forgets=("columns",)),
        Line(r"to(?P<columns>(?:\s+GPU \d{1,3})+)"),
    ),
    rows=(r"GPU (?P<gpu>\d{1,3})(?P<cells>(?:\s+(?:\d{1,6}\.\d|N/A))+)",),
    label=r"GPU (?P<gpu>\d{1,3})",
    cases=(Case(ENDS, {"title": "Rates"}),),
    units={"": 1.0},
    block="title",
)
ROWS = Tool(
    lines=(),
    rows=(r"(?P<size>\d{1,9})(?P<size_unit>K?) (?P<rate>\d{1,9}\.\d)",),
    cases=(Case(("host", "{gpu}")),),
    units={"": 1.0},
    start={"gpu": "gpu0"},
    needs=("memory",),
    lacks="the memory is unknown",
)


def _heading(line: str) -> tuple[tuple[str, str], ...] | None:
    return (("#size", ""), ("rate", "B/s"), ("count", "")) if line == "#size rate count" else None


TABLE = Tool(
    lines=(Line(r"GPU (?P<gpu>\d)"), Line(r"memory (?P<next>\w{1,9})")),
    table=Table(_heading, lambda _: None, {"rate": "rate"}, first="#size", once={"next": "memory"}),
    cases=(
        Case(when={"gpu": ""}, refused="no line names the GPU", what="Observation"),
        Case(("{memory}", "gpu{gpu}"), {"memory": ".+"}),
        Case(("host", "gpu{gpu}")),
    ),
    units={"B/s": 1.0},
)


def rates(text: str, tool: Tool) -> dict[str, float]:
    """The rate of each flow, by its ends."""
    found = [one for one in read_tool(Part("f", 1, text), tool) if isinstance(one, Observation)]
    return {"-".join(one.about.ends): one.value for one in found if isinstance(one.about, Flow)}


def gaps(text: str, tool: Tool) -> list[str]:
    """The reasons why rates are missing."""
    return [one.why for one in read_tool(Part("f", 1, text), tool) if isinstance(one, NotChecked)]


def test_a_matrix_has_a_rate_in_each_cell() -> None:
    """Cells without a number and copies within a GPU are left out. Lines of other programs do not end it."""
    text = "Rates\nto GPU 0 GPU 1\nGPU 0 9.5 1.5\nnoise of a program\nGPU 1 2.5 N/A"
    assert rates(text, MATRIX) == {"gpu0-gpu1": 1.5, "gpu1-gpu0": 2.5}


def test_columns_without_their_title_end_a_matrix() -> None:
    text = "Rates\nto GPU 0 GPU 1\nGPU 0 9.5 1.5\nto GPU 0 GPU 1\nGPU 0 9.5 7.5"
    assert rates(text, MATRIX) == {"gpu0-gpu1": 1.5}


def test_a_row_of_a_matrix_with_a_damaged_number_is_a_gap() -> None:
    why = "f:3: 'GPU 0 9.5 1,5' has a number in a form that the tool does not print"
    assert gaps("Rates\nto GPU 0 GPU 1\nGPU 0 9.5 1,5", MATRIX) == [why]


def test_each_reason_is_stated_once() -> None:
    """The key had the address of a temporary object, so the number of gaps was accidental."""
    assert gaps("\n".join(f"{size}K 5.5" for size in range(1, 40)), ROWS) == ["f:1: the memory is unknown"]


def test_texts_and_values_are_rows() -> None:
    where = Evidence("f:1", "")
    given = [("4K 5.5", {"memory": "pinned"}, where), ("", {"memory": "", "gpu": "gpu7", "rate": "1.5"}, where)]
    found = [one for one in read_rows(Part("f", 1, ""), ROWS, given) if isinstance(one, Observation)]
    assert [(one.about, one.value) for one in found] == [
        (Flow("copy", ("host", "gpu0"), 4096), 5.5),
        (Flow("copy", ("host", "gpu7")), 1.5),
    ]


def test_a_table_by_its_columns() -> None:
    """A value of the next heading does not count for the heading after it."""
    text = "GPU 3\nmemory numa1\n#size rate count\n64 2.5 7\n#size rate count\n64 4.5 7"
    assert rates(text, TABLE) == {"numa1-gpu3": 2.5, "host-gpu3": 4.5}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#size rate count\n64 2.5 7", "f:1: no line names the GPU"),
        ("GPU 3\n64 2.5 7", "f:2: '64 2.5 7' has no heading, so its unit is not known"),
        ("GPU 3\n#size rate count\n64 2.5.7 1 2\n", "f:3: '64 2.5.7 1 2' has not a value for each column"),
        (
            "GPU 3\n#size rate count\n64 2.5",
            "line 3: the output ends here, after 2 of 3 columns; everything before it was read",
        ),
    ],
)
def test_what_a_table_lacks(text: str, why: str) -> None:
    assert gaps(text, TABLE) == [why]


def test_rates_that_fall_with_the_size_are_left_out() -> None:
    tool = Tool(lines=(), rows=ROWS.rows, cases=ROWS.cases, units=ROWS.units, start=ROWS.start, growing=True)
    found = read_tool(Part("f", 1, "1K 4.5\n2K 3.5\n4K 5.5\n1K 2.5"), tool)
    assert [one.value for one in found if isinstance(one, Observation)] == [4.5, 5.5, 2.5]


def test_copies_between_gpus_without_peer_access_go_through_the_host() -> None:
    found = list(read_tool(Part("f", 1, "Rates\nto GPU 0 GPU 1 GPU 2\nGPU 0 N/A 1.5 2.5"), MATRIX))
    for pairs, marked in (({("gpu0", "gpu1")}, ["host", ""]), ({("", "gpu2")}, ["", "host"])):
        flows = [one.about for one in through_host(found, pairs) if isinstance(one, Observation)]
        assert [flow.via for flow in flows if isinstance(flow, Flow)] == marked
