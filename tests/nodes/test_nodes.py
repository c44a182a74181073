"""Whole outputs of the described nodes, healthy and broken: text, tree and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.exporters.formats.json import as_json
from linkgauge.exporters.text.report import as_text
from linkgauge.exporters.text.tree import as_tree
from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.recorded import dump, parse
from tests.support.nodes.described import ALL, BROKEN, FOLDER, NAMES, node, report_of, steady

GOLDEN = Path(__file__).parents[1] / "golden"
# The capture of a described node is always there, so that the test runs also without a recorded node.
CAPTURES = [GOLDEN / "synthetic_small.capture", *sorted(FOLDER.glob("*.capture"))]


@pytest.mark.parametrize("name", NAMES)
def test_text_and_tree(name: str, golden: Callable[[Path, str], None]) -> None:
    report = steady(report_of(node(name)))
    golden(GOLDEN / f"node_{name}.txt", as_text(report, colour=False) + "\n" + as_tree(report.topology))


def test_a_broken_node(golden: Callable[[Path, str], None]) -> None:
    report = steady(report_of(node("hgx-h100", BROKEN)))
    golden(GOLDEN / "node_hgx-h100_broken.txt", as_text(report, colour=False))


def test_json(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "node_desktop.json", as_json(steady(report_of(node("desktop")))))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_recorded_node(path: Path, golden: Callable[[Path, str], None]) -> None:
    report = steady(report_of(parse(path.read_text())))
    golden(GOLDEN / f"node_{path.stem}.txt", as_text(report, colour=False) + "\n" + as_tree(report.topology))


@pytest.mark.parametrize("name", ALL)
def test_every_node_says_where_it_is_known_from(name: str) -> None:
    origin = msgspec.toml.decode((FOLDER / f"{name}.toml").read_text()).get("origin", "")
    how, _, source = origin.partition(" ")
    assert how in ("synthetic,", "recorded"), origin
    assert source.startswith("after " if how == "synthetic," else "on "), origin


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_of_a_capture_says_the_same(name: str) -> None:
    host = Recording(node(name))
    for reader in SOURCES:
        collect(reader, host)
    again = parse(dump(scrub(host.recorded())))
    assert replace(steady(report_of(again)), node=None) == replace(steady(report_of(node(name))), node=None)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_sources_does_not_matter(name: str) -> None:
    host = node(name)
    reports = []
    for readers in (SOURCES, SOURCES[::-1]):
        records = [one for reader in readers for one in collect(reader, host)]
        report = evaluate(assemble(records, Site(), host.now(), origin="capture"))
        reports.append((report.verdict, report.findings, dict(sorted(report.checks.items())), set(report.not_checked)))
    assert reports[0] == reports[1]
