"""Curves of rates by message size: points at their place, no texts that overlap, and only for several sizes."""

from __future__ import annotations

from itertools import combinations

import pytest
from msgspec.structs import replace

from linkgauge.exporters.drawing.curves import curves_of
from linkgauge.exporters.html.report_page import as_html
from linkgauge.models.report import Expectation, Level, Report
from tests.support.screens import screen

RANKS = tuple(f"rank{number}" for number in range(8))


def level(size: int, rate: float, expected: bool) -> Level:
    wanted = Expectation(basis="profile", low=0.9 * rate, typical=rate, high=1.1 * rate, source="x")
    return Level(op="all_reduce", ends=RANKS, size=size, expected=(wanted,) if expected else (), observed=rate)


def report(sizes: range, expected: bool = True) -> Report:
    levels = tuple(level(1 << power, 1e9 * power, expected) for power in sizes)
    return replace(screen("healthy"), levels=levels)


@pytest.mark.parametrize("sizes", [range(20, 23), range(3, 35), range(33, 2, -1)])
def test_a_curve_rises_and_has_its_sizes_below(sizes: range) -> None:
    (curve,) = curves_of(report(sizes))
    assert curve.title == "all_reduce of 8 ranks by message size"
    (line,) = (one for one in curve.drawing.lines if one.style == "good")
    assert len(line.points) == len(curve.drawing.boxes) == len(sizes)
    assert [x for x, _ in line.points] == sorted(x for x, _ in line.points)
    assert [y for _, y in line.points] == sorted((y for _, y in line.points), reverse=True)
    areas = [label.box for label in curve.drawing.labels]
    assert not [1 for a, b in combinations(areas, 2) if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]


def test_the_band_holds_the_expected_rates() -> None:
    (curve,) = curves_of(report(range(20, 30)))
    (band,) = (one for one in curve.drawing.lines if one.style == "band")
    assert len(band.points) == 20
    assert curve.drawing.boxes[0].title == "1 MiB: 20.0 GB/s, expected 18.0 to 22.0"
    (without,) = curves_of(report(range(20, 30), expected=False))
    assert [one for one in without.drawing.lines if one.style == "band"] == []


def test_two_sizes_are_no_curve() -> None:
    assert list(curves_of(report(range(20, 22)))) == []


def test_the_page_has_the_curve() -> None:
    assert 'aria-label="all_reduce of 8 ranks by message size"' in as_html(report(range(20, 30)))
