"""The picture of a node: no text touches another text, a line or the border of a box, and each fault has its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.exporters.drawing.layout import drawing_of
from linkgauge.exporters.drawing.margins import with_margins
from linkgauge.exporters.drawing.path import no_path, path_of
from linkgauge.exporters.drawing.shapes import Drawing, Label, Line, Rectangle
from linkgauge.models.graph.topology import Topology
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.described import EACH, node, report_of
from tests.support.nodes.drawn_nodes import nodes
from tests.support.nodes.large_node import seventy_two, sixteen, wide
from tests.support.screens import SCREENS, screen

Area: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


def picture(report: Report, narrow: bool = False) -> Drawing:
    drawing, diagram = drawing_of(report, no_path(), narrow)
    return with_margins(drawing, diagram, report, no_path(), whole=True)


def overlaps(drawing: Drawing) -> list[tuple[str, str]]:
    """Pairs of texts that overlap, texts on the border of a box, and texts on a line."""
    boxes = [(label, label.box) for label in drawing.labels]
    boxes.sort(key=lambda one: one[1][1])
    found = [(one.text, two.text) for (one, a), (two, b) in _near(boxes) if _touch(a, b)]
    for label, area in boxes:
        found += [(label.text, box.title) for box in drawing.boxes if _crosses(area, box)]
        found += [(label.text, str(line.points)) for line in drawing.lines if _meets(label, line)]
        if area[2] > drawing.width or area[3] > drawing.height or min(area) < 0:
            found.append((label.text, "the edge of the picture"))
    return found


def _near(boxes: Sequence[tuple[Label, Area]]) -> list[tuple[tuple[Label, Area], tuple[Label, Area]]]:
    return [pair for pair in combinations(boxes, 2) if pair[1][1][1] < pair[0][1][3]]


def _touch(a: Area, b: Area) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _crosses(area: Area, box: Rectangle) -> bool:
    """Whether the text is partly inside the box."""
    left, top, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    inside = left <= area[0] and area[2] <= right and top <= area[1] and area[3] <= bottom
    return not inside and _touch(area, (left, top, right, bottom))


def _meets(label: Label, line: Line) -> bool:
    """Whether a line runs through the text, without the descenders of its letters."""
    left, top, right, _ = label.box
    half = max(line.width, line.track) / 2
    for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
        area = (min(x1, x2) - half, min(y1, y2) - half, max(x1, x2) + half, max(y1, y2) + half)
        if x1 == x2:
            area = (x1 - half, min(y1, y2) + half, x1 + half, max(y1, y2) - half)
        if _touch((left, top, right, label.y), area):
            return True
    return False


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", EACH)
def test_no_texts_of_a_described_node_overlap(name: str, narrow: bool) -> None:
    drawing = picture(report_of(node(name)), narrow)
    assert overlaps(drawing) == []
    if narrow:
        assert drawing.width <= 800 - 48


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", SCREENS)
def test_no_texts_of_a_node_with_findings_overlap(name: str, narrow: bool) -> None:
    drawing = picture(screen(name), narrow)
    assert overlaps(drawing) == []
    if narrow:
        assert drawing.width <= 800 - 48


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("build", [wide, sixteen, seventy_two])
def test_no_texts_of_a_large_node_overlap(build: Callable[[], Recorded], narrow: bool) -> None:
    report = report_of(build())
    gpus = {device.aliases[0] for device in report.topology.devices if device.kind == "gpu"}
    drawing = picture(report, narrow)
    assert overlaps(drawing) == []
    assert gpus <= {label.text for label in drawing.labels}


@given(nodes(), st.booleans())
def test_no_texts_of_any_node_overlap(topology: Topology, narrow: bool) -> None:
    drawing = picture(replace(screen("healthy"), topology=topology), narrow)
    assert overlaps(drawing) == []
    texts = " ".join(label.text for label in drawing.labels).split()
    assert {device.id for device in topology.devices if device.kind == "gpu"} <= set(texts)


@pytest.mark.parametrize("name", SCREENS)
def test_each_fault_has_a_place_in_a_narrow_picture_too(name: str) -> None:
    drawings = [picture(screen(name), narrow) for narrow in (False, True)]
    wide_numbers, narrow_numbers = ({number for box in one.boxes for number in box.numbers} for one in drawings)
    assert wide_numbers == narrow_numbers
    assert bool(wide_numbers) == (name != "healthy")


def test_a_port_names_the_other_end_of_its_cable() -> None:
    site = Site(cables={"mlx5_2/1": "leaf3 port 17", "eth0": "mgmt1 port swp4"})
    report = report_of(node("hgx-h100"), site)
    boxes = {box.title.partition("\n")[0]: box.title for box in picture(report).boxes}
    assert boxes["mlx5_2/1 ib0"] == "mlx5_2/1 ib0\nto leaf3 port 17"
    assert boxes["mlx5_0/1 eth0"] == "mlx5_0/1 eth0\nto mgmt1 port swp4"
    assert boxes["mlx5_3/1 ib1"] == "mlx5_3/1 ib1"
    assert overlaps(picture(report)) == overlaps(picture(report, narrow=True)) == []


def test_a_tall_box_has_its_name_on_each_screenful() -> None:
    labels = picture(report_of(seventy_two())).labels
    places = sorted(label.y for label in labels if label.text == "NVLink domain")
    assert len(places) > 4
    assert all(below - above < 1000 for above, below in pairwise(places))


@pytest.mark.parametrize(("name", "beside", "fact"), [
    ("pcie", "gpu1", "runs on x8 of x16"),
    ("nic", "mlx5_4/1 ib2", "is down"),
    ("nvme", "nvme3 nvme3n1", "runs on x2 of x4"),
    ("nvlink", "gpu3", "has 1 of 18 NVLinks"),
])  # fmt: skip
def test_a_fault_is_in_the_box_of_its_device(name: str, beside: str, fact: str) -> None:
    drawing = picture(screen(name))
    (device,) = (label for label in drawing.labels if label.text == beside)
    (fault,) = (label for label in drawing.labels if label.text == fact)
    holder = [
        box
        for box in drawing.boxes
        if box.x <= device.x <= box.x + box.width and box.y <= device.y <= box.y + box.height
    ]
    assert [box.y <= fault.y <= box.y + box.height for box in holder] == [True]
    assert holder[0].style.split()[1] == fault.style


def test_an_absent_device_is_in_its_old_place() -> None:
    before, now = picture(screen("healthy")), picture(screen("absent"))
    (old,) = (box for box in before.boxes if box.title.startswith("gpu3\n"))
    (new,) = (box for box in now.boxes if "absent" in box.style)
    assert (new.x, new.title) == (old.x, "3e:00.0\nwas gpu3\nis not on the bus any\nmore")
    columns = ([box for box in all_boxes if box.x == old.x] for all_boxes in (before.boxes, now.boxes))
    places = [sorted(column, key=lambda box: box.y) for column in columns]
    assert places[0].index(old) == places[1].index(new)
    assert len(places[0]) == len(places[1])


def test_a_link_without_evidence_is_dashed() -> None:
    report = screen("healthy")
    dashed = [line for line in drawing_of(report, no_path())[0].lines if line.dashed]
    bare = [one.subject for one in report.coverage.uncorroborated if one.group == "links"]
    assert bare == ["0000:11:00.0", "mlx5_0/1", *(f"mlx5_{number}/1" for number in range(2, 10))]
    assert len(dashed) == len(bare)


def test_interconnects_that_would_cross_processors_are_named() -> None:
    texts = [label.text for label in picture(report_of(node("gh200-quad"))).labels]
    assert texts.count("interconnect, rate not known") == 3
    note = "Not drawn: interconnect of package0 to package2, package0 to package3, package1 to package3."
    assert [text for text in texts if text.startswith("Not drawn: interconnect")] == [note]


def test_a_path_names_its_bottleneck() -> None:
    report = screen("pcie")
    path = path_of(report, "gpu1", "numa0")
    assert path is not None
    assert path.text == "gpu1 to numa0: bottleneck gpu1 to 0000:1a:03.0, 31.5 GB/s"
    drawing, _ = drawing_of(report, path)
    assert [label.text for label in drawing.labels if "bottleneck" in label.text] == ["31.5 of 63.0 GB/s, bottleneck"]
    assert len([line for line in drawing.lines if line.marked]) == 3  # processor, root port, switch, GPU
    assert path_of(report, "gpu1", "nothing") is None


def test_what_was_not_read_is_not_good() -> None:
    silent = picture(report_of(node("hgx-h100", '[gpu]\nmissing = "not installed"')))
    assert [box.style for box in silent.boxes if "H100 SXM5" in box.title] == ["device unread"] * 8
    virtual, _ = drawing_of(report_of(node("vm-p5")), no_path())
    (ports,) = {line.style for line in virtual.lines if line.width == 2.0}
    assert ports == "unread"
    down, _ = drawing_of(screen("nic"), no_path())
    assert [line.style for line in down.lines if line.style == "critical"] == ["critical"]
