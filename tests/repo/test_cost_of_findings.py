"""docs/reference/cost-of-findings.md has the output of bench/accuracy/costs.py, and all factors agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.accuracy import costs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cost-of-findings.md"


@pytest.mark.slow
def test_costs_agree_with_a_calculation_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    assert costs.main() == 0
    assert capsys.readouterr().out in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("node", costs.NODES)
def test_one_fault_of_each_node(node: str) -> None:
    """18 NVLinks less one are 18/17, 12 less one 12/11; a port at half rate takes twice as long."""
    at = costs.place(node)
    report = costs.report_of(("port at half rate", "one NVLink inactive"), at)
    links = 12 if node == "hgx-a100" else 18
    assert report.impact["all_reduce"] == pytest.approx(links / (links - 1), abs=1e-3)
    assert report.impact["all_reduce@fabric"] == 2.0
