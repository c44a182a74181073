"""The picture as SVG: well-formed, with hostile names as text, without scripts and without other files."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from linkgauge.exporters.drawing.path import path_of
from linkgauge.exporters.drawing.svg import as_svg, svg_parts
from linkgauge.exporters.text.terminal import safe
from linkgauge.models.graph.topology import Topology
from linkgauge.models.report import Report
from tests.support.nodes.described import EACH, node, report_of
from tests.support.screens import screen

_SVG = "{http://www.w3.org/2000/svg}"
_ALLOWED = {f"{_SVG}{tag}" for tag in ("svg", "style", "title", "rect", "polyline", "text")}
HOSTILE = (
    "<script>alert(1)</script>",
    "</svg><script>x</script>",
    "</style><svg/onload=x>",
    "]]>&amp;<!--",
    "{{ 7*7 }}",
    "\u202egnp.exe",
    "\u05d0\u05d1\u05d2",
    "x" * 300,
    "\x1b[31m\x07\x00",
)


def hostile(report: Report, text: str) -> Report:
    """The report with this text as the name of the node, of each device and of each finding."""
    devices = tuple(replace(one, name=text, aliases=(*one.aliases[:1], text)) for one in report.topology.devices)
    findings = tuple(replace(one, fact=text, message=text, device=text) for one in report.findings)
    lost = replace(findings[0], subject=text)
    topology = Topology(devices, report.topology.links)
    return replace(report, node=text, topology=topology, findings=(*findings, lost), cables={"mlx5_2/1": text})


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("narrow", [False, True])
def test_names_stay_text(text: str, narrow: bool) -> None:
    report = hostile(screen("three"), text)
    drawn = svg_parts(report)[-1].svg if narrow else as_svg(report)
    root = ElementTree.fromstring(drawn)
    assert {one.tag for one in root.iter()} == (_ALLOWED - {f"{_SVG}style"} if narrow else _ALLOWED)
    assert {name for one in root.iter() for name in one.attrib} == _ATTRIBUTES
    shown = [one.text or "" for one in root.iter(f"{_SVG}text")]
    assert all(line.isprintable() for line in shown)
    assert sum(line.startswith(safe(text)[:9]) for line in shown) >= 3


@pytest.mark.parametrize("name", EACH)
def test_it_is_one_file_that_runs_nothing(name: str) -> None:
    drawn = as_svg(report_of(node(name)))
    root = ElementTree.fromstring(drawn)
    assert {one.tag for one in root.iter()} <= _ALLOWED
    assert {name for one in root.iter() for name in one.attrib} <= _ATTRIBUTES
    assert "url(" not in drawn
    assert "@import" not in drawn
    assert len(drawn) < 100_000


def test_a_node_without_devices_is_a_picture_too() -> None:
    root = ElementTree.fromstring(as_svg(replace(screen("healthy"), topology=Topology())))
    assert [one.text for one in root.iter(f"{_SVG}text")][0] == "hgx: ok"


def test_equal_reports_give_equal_pictures() -> None:
    report = screen("six")
    assert as_svg(report, path_of(report, "gpu0", "gpu7")) == as_svg(report, path_of(report, "gpu0", "gpu7"))


_ATTRIBUTES = {
    *("class", "role", "aria-label", "width", "height", "viewBox"),
    *("x", "y", "rx", "points", "stroke-width", "text-anchor", "data-findings"),
}


def test_an_absent_device_is_drawn_where_it_was() -> None:
    """Below the port where the inventory of before had it. Without such a port it is named below the picture."""
    report = screen("absent")
    unknown = replace(report, findings=tuple(replace(one, location={}) for one in report.findings))
    for now, before in zip(svg_parts(report), svg_parts(unknown), strict=True):
        assert '<rect class="device critical absent"' in now.svg
        assert "without a place" not in now.svg
        assert "Findings without a place in the picture: gpu3 (module 4, 3e:00.0)<" in before.svg


def test_a_narrow_window_has_its_own_picture() -> None:
    shown = {name: [one.shown for one in svg_parts(report_of(node(name)))] for name in ("t4", "hgx-h100", "mi300x")}
    assert shown == {"t4": ["from900", "below900"], "hgx-h100": ["from1300", "below1300"], "mi300x": [""]}
