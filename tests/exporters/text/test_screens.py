"""What an operator reads of twelve nodes: whole texts in tests/golden, their lengths, and folded briefs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.exporters.text.findings import Detail, block, details_of, grouped
from linkgauge.exporters.text.report import as_text
from linkgauge.exporters.text.terminal import painter, within
from linkgauge.models.diagnosis.headlines import one_line
from tests.support.screens import SCREENS, screen

GOLDEN = Path(__file__).parents[2] / "golden" / "screens"
MOST = {"healthy": 6, "three": 40, "six": 60, "eight": 25}  # lines; a node with one fault has at most 25


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_of_a_node(name: str, golden: Callable[[Path, str], None]) -> None:
    text = as_text(screen(name), colour=False)
    assert len(text.splitlines()) <= MOST.get(name, 25)
    golden(GOLDEN / f"{name}.txt", text)


def test_the_briefs_of_all_nodes(golden: Callable[[Path, str], None]) -> None:
    briefs = (as_text(screen(name), False, "brief") for name in SCREENS)
    golden(GOLDEN / "briefs.txt", "\n".join(briefs))


@pytest.mark.parametrize("name", SCREENS)
def test_a_finding_has_at_most_twelve_lines(name: str) -> None:
    groups = grouped(screen(name).findings)
    for group in groups:
        assert len(list(block(group, painter(False), details_of(groups, full=False)))) <= Detail.WHOLE.value


@pytest.mark.parametrize("name", SCREENS)
def test_a_narrow_terminal_breaks_lines_and_a_wide_one_does_not_stretch_them(name: str) -> None:
    whole = as_text(screen(name), False, "full")
    with within(60):
        narrow = as_text(screen(name), False, "full")
    with within(200):
        wide = as_text(screen(name), False, "full")
    assert max(map(len, narrow.splitlines())) <= 60
    assert "".join(narrow.split()) == "".join(whole.split())
    assert wide == whole


def test_the_line_of_a_finding() -> None:
    (finding,) = screen("pcie").findings
    assert one_line(finding) == "CRITICAL gpu1 (module 2, 1e:00.0) runs on x8 of x16: power-cycle, then reseat"


def test_eight_equal_findings_are_one() -> None:
    assert len(screen("eight").findings) == 8
    assert len(grouped(screen("eight").findings)) == 1


def test_clush_folds_equal_nodes() -> None:
    """`clush -b` folds equal output of nodes (clustershell documentation, clush, "Gathering output")."""
    kinds = ["healthy"] * 11 + ["pcie"] * 5 + ["three"] * 3 + ["absent"]
    reports = [
        replace(screen(kind), node=f"node{number}", taken_at=f"2026-11-21T03:00:{number:02}Z", seconds=number / 7)
        for number, kind in enumerate(kinds)
    ]
    blocks = Counter(as_text(report, False, "brief") for report in reports)
    assert sorted(blocks.values()) == [1, 3, 5, 11]


def test_a_brief_is_the_first_part_without_the_name_of_the_node() -> None:
    for name in SCREENS:
        brief = as_text(screen(name), False, "brief").splitlines()
        first = as_text(screen(name), False).partition("\n\n")[0].splitlines()
        assert brief == [first[0].replace("  hgx  ", "  "), *first[1:]]
