"""The HTML reports have no fault that axe-core finds. The variable LINKGAUGE_AXE names the file axe.min.js."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linkgauge.exporters.html.front_page import front_page
from linkgauge.exporters.html.report_page import as_html
from tests.support.nodes.measured_reports import measured
from tests.support.programs.chromium import CHROMIUM, Tab, browser
from tests.support.screens import screen

AXE = os.environ.get("LINKGAUGE_AXE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(not os.path.isfile(AXE), reason="LINKGAUGE_AXE names no axe.min.js: npm install axe-core"),
]
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
# Rules that are broken, and rules that axe cannot decide with the elements that are in no picture.
FAULTS = """(async () => {
  const found = await axe.run();
  const named = rules => rules.map(rule => [rule.id, rule.nodes.map(node => node.html)]);
  const outside = named(found.incomplete).map(([id, parts]) => [id, parts.filter(part => !part.startsWith("<text"))]);
  return [...named(found.violations), ...outside.filter(([, parts]) => parts.length)]; })()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def faults(tab: Tab, page: Path, scheme: str, width: int = 1400) -> Any:
    tab.open(page)
    tab.shape(width, scheme)
    tab.value(OPEN)
    tab.value(f"{Path(AXE).read_text(encoding='utf-8')};0")
    return tab.call("Runtime.evaluate", expression=FAULTS, awaitPromise=True, returnByValue=True)["result"]["value"]


def test_a_fault_is_found(tab: Tab, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!DOCTYPE html><html lang='en'><title>x</title><main><h1>x</h1><p style='color: #ccc'>x</p></main>"
    )
    assert faults(tab, page, "light") == [["color-contrast", ['<p style="color: #ccc">x</p>']]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["healthy", "six"])
def test_the_pages_have_no_fault(tab: Tab, name: str, scheme: str, tmp_path: Path) -> None:
    """Contrasts in a picture, which axe cannot decide, are tested with the palette."""
    report = measured(screen(name))
    for text in (as_html(report), front_page(report)):
        page = tmp_path / "page.html"
        page.write_text(text)
        for width in (1400, 800):
            assert faults(tab, page, scheme, width) == []
        assert (tab.requests, tab.messages) == ([page.as_uri()], [])
