"""The picture of a collective: the rates of the table, no overlapping texts, and the bound where only it is known."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

OPERATIONS = ("all_reduce", "alltoall", "send")


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["collective", *words], prog_name="linkgauge")
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("op", OPERATIONS)
def test_the_points_are_the_rows_of_the_table(op: str) -> None:
    words = (op, "--machine", "nvidia-dgx-h100", "--nodes", "4")
    picture = ElementTree.fromstring(run(*words, "--format", "svg"))
    drawn = [one.text or "" for one in picture.iterfind(".//{*}rect/{*}title")]
    rows = re.findall(r"^(\S+ \S?iB) .*?([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)  ", run(*words, "--curve"), re.MULTILINE)
    assert len(rows) == 25
    assert drawn == [
        f"{size}: typical {typical} GB/s, {low} to {high}, bound {bound}" for size, bound, low, typical, high in rows
    ]
    lines = [one.get("class") for one in picture.iterfind(".//{*}polyline")]
    assert lines[-3:] == ["wire band", "wire bound bare", "wire good"]


def test_the_bound_alone() -> None:
    """No rates are published of reductions in the switches between nodes."""
    picture = run("all_reduce", "--machine", "nvidia-dgx-h100", "--nodes", "4", "--sharp", "--format", "svg")
    assert "Line: bus bandwidth of the bound" in picture
    assert picture.count(": bound ") == 25
    assert "wire band" not in picture


def test_texts_are_inside_and_do_not_overlap() -> None:
    picture = ElementTree.fromstring(
        run("all_reduce", "--machine", "nvidia-dgx-h100", "--nodes", "16", "--format", "svg")
    )
    height = float(picture.get("height", "0"))
    places = [(float(one.get("x", "0")), float(one.get("y", "0"))) for one in picture.iterfind("{*}text")]
    assert len({*places}) == len(places)
    assert max(y for _, y in places) < height - 4
