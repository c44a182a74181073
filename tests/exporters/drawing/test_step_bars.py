"""The pictures of `linkgauge plan` and `linkgauge history`: the numbers of their tables, and no overlapping texts."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.exporters.drawing.axes import round_step
from linkgauge.exporters.drawing.palette import PARTS
from linkgauge.exporters.drawing.rate_history import as_svg
from linkgauge.exporters.drawing.shapes import Label
from linkgauge.models.facts.records import Flow
from linkgauge.models.history.past import History

DGX = ("--machine", "nvidia-dgx-h100", "--nodes")
JOBS = [("llama3-8b", "1"), ("llama3-70b,tp=8", "64"), ("deepseek-v3", "256"), ("gpt3-175b,tp=8,pp=8", "128")]


def _apart(picture: ElementTree.Element) -> None:
    """No texts overlap, and all are inside."""
    width, height = float(picture.get("width", "0")), float(picture.get("height", "0"))
    labels = [
        Label(
            float(one.get("x", "0")), float(one.get("y", "0")), one.text or "", one.get("class", ""),
            one.get("text-anchor", "start"),
        )
        for one in picture.iterfind("{*}text")
    ]  # fmt: skip
    for one in labels:
        left, top, right, bottom = one.box
        assert 0 <= left <= right <= width, one
        assert 0 <= top <= bottom <= height, one
    for one, two in combinations(labels, 2):
        left, top, right, bottom = one.box
        other = two.box
        assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (one, two)


@pytest.mark.parametrize(("job", "nodes"), JOBS)
@pytest.mark.slow
def test_bars_are_the_parts_of_each_layout(job: str, nodes: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    words = ["plan", job, *DGX, nodes, "--sweep", "--top", "40", "--format", "json", "--plot", str(path)]
    done = CliRunner().invoke(main, words, prog_name="linkgauge")
    assert done.exit_code == 0, done.output
    picture = ElementTree.fromstring(path.read_text())
    _apart(picture)
    steps = json.loads(done.stdout)["steps"][:30]
    boxes = [(one.findtext("{*}title", ""), one) for one in picture.iterfind("{*}rect")]
    drawn = {title: box for title, box in boxes if ": compute " in title}
    assert len(drawn) == len(steps)
    for step in steps:
        seconds = step["compute"]
        box = drawn[f"{step['as']}: compute {f'{seconds:.3g} s' if seconds >= 1 else f'{seconds * 1e3:.3g} ms'}"]
        assert box.get("class") == f"part {next(iter(PARTS))}"
        assert float(box.get("width", "0")) / seconds == pytest.approx(_scale(picture, steps), rel=0.01)


def _scale(picture: ElementTree.Element, steps: list[dict[str, float]]) -> float:
    """Pixels per second: the longest thin line ends at the right border of the graph."""
    ends = [
        float(box.get("x", "0")) + float(box.get("width", "0"))
        for box in picture.iterfind("{*}rect")
        if box.get("class") == "spread"
    ]
    begin = min(float(box.get("x", "0")) for box in picture.iterfind("{*}rect") if "part" in (box.get("class") or ""))
    return (max(ends) - begin) / max(max(step["slowest"], step["usual"]) for step in steps)


def test_a_graph_for_each_flow_with_its_change() -> None:
    hour = 3600.0
    falling = tuple((hour * at, 50e9 if at < 100 else 40e9) for at in range(200))
    steady = tuple((hour * at, 20e9) for at in range(100))
    flows = {Flow("copy", ("host", "gpu1")): falling, Flow("copy", ("gpu1", "<b>\x1b[1m")): steady}
    text = as_svg(History(states=(), rates=flows, inventories=()), "node<1>")
    picture = ElementTree.fromstring(text)
    _apart(picture)
    titles = [one.text or "" for one in picture.iterfind("{*}rect/{*}title")]
    assert len(titles) == 300
    assert titles[0] == "1970-01-01T00:00:00Z: 50 GB/s"
    labels = [one.text for one in picture.iterfind("{*}text")]
    assert "node<1>: measured rates" in labels
    assert "since 1970-01-05 04:00: 40 instead of 50 GB/s" in labels
    assert "\x1b" not in text


@pytest.mark.parametrize(("most", "step"), [(1, 0.2), (0.9, 0.2), (10, 2), (11, 5), (49, 10), (51, 20), (3e-4, 1e-4)])
def test_marks_are_round(most: float, step: float) -> None:
    assert round_step(most) == pytest.approx(step)
