"""The HTML report in a browser: no console message, no request, and nothing too small, too wide or without a name."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.exporters.drawing.svg import as_svg
from linkgauge.exporters.html.report_page import as_html
from linkgauge.models.report import Report
from tests.support.nodes.measured_reports import measured
from tests.support.programs.chromium import CHROMIUM, Tab, browser
from tests.support.screens import screen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]
NAMES = ("healthy", "pcie", "nic", "nvme", "nvlink", "memory", "heat", "six", "absent")
VIEWS = [(width, scheme) for width in (1400, 800) for scheme in ("light", "dark")]
# Texts that are smaller than 11 pixels.
SMALL = """[...document.querySelectorAll("body *")].filter(one => [...one.childNodes].some(node =>
  node.nodeType === 3 && node.data.trim()) && parseFloat(getComputedStyle(one).fontSize) < 11).length"""
# Texts of the picture that overlap in the fonts of this machine.
OVERLAPS = """(() => {
  const all = [...document.querySelectorAll("svg text")].map(one => [one.textContent, one.getBoundingClientRect()]);
  return all.flatMap(([one, a], at) => all.slice(at + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
    .map(([two]) => one + " | " + two)); })()"""
# Texts of the picture that are wider than the box that they start in.
ESCAPED = """[...document.querySelectorAll("svg text")].filter(text => {
  const a = text.getBoundingClientRect();
  return [...document.querySelectorAll("svg rect:not(.ground)")].map(one => one.getBoundingClientRect()).some(b =>
    a.left >= b.left && a.left < b.right && a.top >= b.top - 1 && a.bottom <= b.bottom + 1 && a.right > b.right);
  }).map(text => text.textContent)"""
NAMELESS = """[...document.querySelectorAll("svg, [role=region]")].filter(one => !one.getAttribute("aria-label")).length
  + [...document.querySelectorAll("th")].filter(one => !one.scope).length"""
_KEYS = {"Tab": 9, "Enter": 13}
# Pixels by which the picture is wider than its place, so that it scrolls sideways.
SCROLLED = """[...document.querySelectorAll(".wide")].filter(one => one.querySelector("svg") && one.clientWidth)
  .map(one => one.scrollWidth - one.clientWidth)"""
# Parts that are wider than the window and cannot be scrolled.
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_a_request_and_a_fault_are_seen(tab: Tab, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p style='font-size: 9px; width: 3000px'>x</p><img src='other.png'><script>nothing()</script>")
    tab.open(page)
    assert tab.requests == [page.as_uri(), (tmp_path / "other.png").as_uri()]
    assert "ReferenceError" in "".join(tab.messages)
    assert (tab.value(SMALL), tab.value(WIDE) > 0) == (1, True)


@pytest.mark.parametrize("name", NAMES)
def test_the_report_of_a_node(tab: Tab, name: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(as_html(measured(screen(name))))
    tab.open(page)
    assert tab.value(NAMELESS) == 0
    assert tab.value("document.documentElement.lang") == "en"
    backgrounds = set()
    for width, scheme in VIEWS:
        tab.shape(width, scheme)
        assert tab.value(WIDE) == 0, (width, scheme)
        assert tab.value(SCROLLED) == [0], (width, scheme)
        assert tab.value(SMALL) == 0
        backgrounds.add((scheme, tab.value("getComputedStyle(document.body).backgroundColor")))
        keep(tab, f"{name}-{width}-{scheme}")
    assert backgrounds == {("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 20, 25)")}
    assert tab.value(OVERLAPS) == []
    assert tab.value(ESCAPED) == []
    assert tab.messages == []
    assert tab.requests == [page.as_uri()]


def test_a_finding_marks_its_place(tab: Tab, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(as_html(screen("six")))
    tab.open(page)
    hover = "document.querySelector('details[data-finding=\"{}\"]').dispatchEvent(new MouseEvent('mouse{}'))"
    lit = """[...document.querySelectorAll(".lit")].filter(one => one.getClientRects().length)
      .map(one => one.querySelector("title")).filter(Boolean).map(one => one.textContent.split("\\n")[0])"""
    for width, devices in ((1400, ("gpu5", "mlx5_4/1 ib2", "gpu3", "gpu1")), (800, ("gpu5", "mlx5_4", "gpu3", "gpu1"))):
        tab.shape(width, "light")
        for number, device in enumerate(devices, 1):
            tab.value(hover.format(number, "enter"))
            assert tab.value(lit) == [device]
            tab.value(hover.format(number, "leave"))
            assert tab.value(lit) == []
    tab.value(
        "(() => { const field = document.querySelector('input'); field.value = 'NVLinks';"
        "field.dispatchEvent(new Event('input')); })()"
    )
    shown = "[...document.querySelectorAll('details[data-finding]')].filter(one => !one.hidden).length"
    assert tab.value(shown) == 1
    assert tab.messages == []


def test_the_report_without_a_script(tab: Tab, tmp_path: Path) -> None:
    """All findings are there, and the keyboard opens and closes them."""
    page = tmp_path / "report.html"
    page.write_text(as_html(measured(screen("six"))))
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page)
        assert tab.value("document.querySelectorAll('input, button').length") == 0
        assert tab.value("document.querySelectorAll('details[data-finding]').length") == 6
        opened = "document.querySelectorAll('details')[3].open"
        before = tab.value(opened)
        for _ in range(4):
            _press(tab, "Tab", "")
        assert tab.value("document.activeElement.parentElement === document.querySelectorAll('details')[3]")
        assert tab.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        _press(tab, "Enter", "\r")
        assert tab.value(opened) != before
        assert (tab.requests, tab.messages) == ([page.as_uri()], [])
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def _press(tab: Tab, key: str, text: str) -> None:
    tab.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, text=text, windowsVirtualKeyCode=_KEYS[key])
    tab.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=_KEYS[key])


def test_each_finding_is_printed_with_its_steps(tab: Tab, tmp_path: Path) -> None:
    """Also those that are closed on the screen."""
    page = tmp_path / "report.html"
    page.write_text(as_html(screen("six")))
    tab.open(page)
    visible = "[...document.querySelectorAll('details[data-finding] dl')].map(one => one.checkVisibility({"
    visible += "contentVisibilityAuto: true})).filter(Boolean).length"
    assert tab.value(visible) == 3
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value(visible) == 6
    tab.call("Emulation.setEmulatedMedia", media="")


def test_the_report_on_paper(tab: Tab, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(as_html(measured(screen("six"))))
    tab.open(page)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    tab.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.call("Emulation.setEmulatedMedia", media="")
    paper = base64.b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    assert paper.startswith(b"%PDF-")
    if folder := os.environ.get("LINKGAUGE_SCREENSHOTS"):
        Path(folder, "six.pdf").write_bytes(paper)


@pytest.mark.parametrize(
    "hostile", ["</style><img src=//x.example/1>", "<script src=//x.example/1></script>", "\u202e" * 9]
)
def test_hostile_names_request_nothing(tab: Tab, hostile: str, tmp_path: Path) -> None:
    for file, text in (("report.html", as_html), ("node.svg", as_svg)):
        page = tmp_path / file
        page.write_text(text(hostile_report(hostile)))
        tab.open(page)
        assert (tab.requests, tab.messages) == ([page.as_uri()], [])


def hostile_report(text: str) -> Report:
    """The report with this text as the name of the node, of each device and of each finding."""
    report = screen("three")
    devices = tuple(replace(one, name=text, aliases=(*one.aliases[:1], text)) for one in report.topology.devices)
    findings = tuple(replace(one, fact=text, message=text, device=text) for one in report.findings)
    return replace(report, node=text, topology=replace(report.topology, devices=devices), findings=findings)


def keep(tab: Tab, name: str) -> None:
    """Write a screenshot of the whole page into the folder of the variable LINKGAUGE_SCREENSHOTS."""
    if folder := os.environ.get("LINKGAUGE_SCREENSHOTS"):
        shot = tab.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        Path(folder, f"{name}.png").write_bytes(base64.b64decode(shot))
