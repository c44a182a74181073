"""The HTML report: complete, escaped, without addresses of other hosts, and with no script but its own."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from linkgauge.exporters.html.report_page import as_html
from linkgauge.exporters.html.styles import script
from linkgauge.exporters.text.terminal import safe
from linkgauge.models.diagnosis.headlines import one_line
from linkgauge.models.report import Report
from tests.support.nodes.described import ALL, EACH, node, report_of
from tests.support.nodes.measured_reports import measured
from tests.support.screens import SCREENS, screen

GOLDEN = Path(__file__).parents[2] / "golden"
_SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "hr", "img", "link", "input"}
HOSTILE = ("<script>alert(1)</script>", "</style><svg/onload=x>", "{{ 7*7 }}", "\u202egnp.exe", "x" * 300, "\x1b[31m")


class Page(HTMLParser):
    """The tags and texts of a page. Fails if a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "


def test_the_page_of_a_node_with_three_faults(golden: Callable[[Path, str], None]) -> None:
    golden(
        GOLDEN / "report_three.html", re.sub(r"linkgauge \d+\.\d+\.\d+", "linkgauge 0.0.0", as_html(screen("three")))
    )


@pytest.mark.parametrize("name", SCREENS)
def test_each_finding_is_there_with_its_steps(name: str) -> None:
    report, page = screen(name), Page(as_html(screen(name)))
    words = " ".join(page.words.split())
    for one in report.findings:
        for text in (one_line(one).partition(" ")[2].strip(), one.message, *one.steps):
            assert " ".join(text.split()) in words


@pytest.mark.parametrize("name", EACH)
def test_it_is_one_file_with_one_script(name: str) -> None:
    text = as_html(measured(report_of(node(name))))
    page = Page(text)
    assert page.tags & {"link", "img", "iframe", "object", "form"} == set()
    assert [one for one in page.attributes if one[0] in ("src", "href", "style") or one[0].startswith("on")] == []
    assert "url(" not in text
    assert re.findall(r"<script.*?</script>", text, re.DOTALL) == [f"<script>{script()}</script>"]
    assert len(text) < 500_000


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_stay_text(hostile: str) -> None:
    report = screen("three")
    finding = replace(report.findings[0], message=hostile, steps=(hostile,), device=hostile, fact=hostile)
    plain, page = Page(as_html(report)), Page(as_html(replace(report, node=hostile, findings=(finding,))))
    assert page.tags <= plain.tags | {"ol"}
    assert {name for name, _ in page.attributes} == {name for name, _ in plain.attributes}
    assert policy_of(as_html(report)) == policy_of(as_html(replace(report, node=hostile)))
    assert page.words.count(safe(hostile)) >= 3


def policy_of(page: str) -> str:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    return unescape(policy)


@pytest.mark.parametrize("name", ["healthy", "six"])
def test_the_page_satisfies_its_own_policy(name: str) -> None:
    page = as_html(measured(screen(name)))
    (styles,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = b64encode(sha256(styles.encode()).digest()).decode()
    (code,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    runs = b64encode(sha256(code.encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; script-src 'sha256-{runs}'"
    assert policy_of(page) == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def test_the_headings_form_an_outline() -> None:
    levels = [int(one) for one in re.findall(r"<h([1-6])", as_html(measured(screen("six"))))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_the_picture_is_in_the_page_with_its_faults() -> None:
    page = as_html(screen("three"))
    wide, narrow = (ElementTree.fromstring(one) for one in re.findall(r"<svg .*?</svg>", page, re.DOTALL))
    texts, fewer = ([one.text for one in picture.iter(f"{_SVG}text")] for picture in (wide, narrow))
    faults = {"gpu1", "runs on x8 of x16", "31.5 of 63.0 GB/s", "mlx5_4/1 ib2", "runs on x2 of x4"}
    assert {*faults, "NVLink domain"} <= set(texts)
    assert faults <= set(fewer)
    assert texts.count("18 x NVLink 450.0 GB/s") == fewer.count("18 x NVLink 450.0 GB/s") == 8
    assert float(narrow.attrib["width"]) <= 800 - 48 < float(wide.attrib["width"]) <= 1400 - 48


def test_rates_are_shown_by_level() -> None:
    words = " ".join(Page(as_html(measured(screen("healthy")))).words.split())
    assert "copy GPU to GPU, nvlink 56 20.0 20.0 9.0 to 11.0 9.0 to 9.6" in words
    assert "read disk to NUMA node 8 20.0 20.0 9.0 to 11.0 9.0" in words


def test_slow_links_are_named_in_the_row_of_their_rate() -> None:
    words = " ".join(Page(as_html(screen("six"))).words.split())
    assert "NVLink 4 1 25.0 down gpu3/nvlink7" in words
    assert "PCIe 5.0 x16 1 63.0 31.5 gpu1" in words
    idle = " ".join(Page(as_html(report_of(node("desktop")))).words.split())
    assert "PCIe 4.0 x16 1 31.5 4.0 gpu0 (no finding)" in idle


def test_the_first_lines_say_what_to_do() -> None:
    first = {
        "six": "failed hgx Drain the node: 4 critical findings, 2 warnings.",
        "nvme": "degraded hgx Inspect the node: 1 warning.",
        "healthy": "ok hgx Keep the node: no finding.",
    }
    for name, text in first.items():
        assert text in " ".join(Page(as_html(screen(name))).words.split())


def test_what_has_no_evidence_is_listed() -> None:
    report = screen("three")
    words = Page(as_html(report)).words
    for one in report.coverage.uncorroborated:
        assert one.why in words
        assert one.subject in words


def test_measured_rates_have_a_matrix() -> None:
    words = Page(as_html(measured(screen("healthy")))).words
    assert "Measured: copy, GPU to GPU" in words
    assert "Measured: copy, NUMA node to GPU" in words


def test_an_unknown_verdict_says_why() -> None:
    report: Report = report_of(node("hgx-h100", '[gpu]\nmissing = "not installed"'))
    assert report.verdict == "unknown"
    assert "This node is not known to be healthy" in Page(as_html(report)).words
    assert len(ALL) > 20
