"""Tables of collectives whose rate falls with the size: every healthy table of the published ones has no finding."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy.collectives.collective_curves import SHARED, read
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Evidence, Flow, Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site

AT = 1795230000.0
RANKS = tuple(f"rank{number}" for number in range(16))


def report_on(rates: Sequence[tuple[int, float]]) -> Report:
    """The report of one table: sizes in bytes and bus bandwidths in GB/s."""
    records = [
        Observation(
            about=Flow("all_reduce", RANKS, size),
            quantity="bus_bandwidth",
            unit="bytes_per_second",
            value=rate * 1e9,
            at=AT,
            evidence=Evidence(f"table:{number}", f"{size} {rate}"),
        )
        for number, (size, rate) in enumerate(rates, 1)
    ]
    return evaluate(assemble(records, Site(), AT, origin="dumps"))


def test_a_rate_that_collapses() -> None:
    report = report_on([(1 << 24, 90.0), (1 << 25, 171.0), (1 << 26, 18.0), (1 << 27, 19.0)])
    [found] = report.findings
    assert (report.verdict, found.code, found.severity, found.confidence) == (
        "degraded",
        "bandwidth-low",
        "warning",
        "likely",
    )
    assert found.message == (
        "all_reduce rank0-...-rank15 reaches 19.0 GB/s with 128 MiB, but 171.0 GB/s with 32 MiB: the rate of good "
        "links does not fall with the size"
    )
    assert [one.source for one in found.evidence] == ["table:4", "table:2"]


@pytest.mark.parametrize(
    "rates",
    [
        [(1 << 24, 90.0), (1 << 25, 171.0), (1 << 26, 60.0), (1 << 27, 172.0)],  # one disturbed row
        [(1 << 24, 90.0), (1 << 25, 171.0), (1 << 26, 172.0), (1 << 27, 60.0)],  # the last row, by a factor of three
        [(1 << 10, 0.2), (1 << 11, 0.9), (1 << 12, 0.1), (1 << 13, 0.1)],  # messages of a few bytes
        [(1 << 24, 171.0), (1 << 25, 18.0)],  # two rows show no curve
    ],
)
def test_no_collapse(rates: Sequence[tuple[int, float]]) -> None:
    assert not report_on(rates).findings


@pytest.mark.skipif(not SHARED.exists(), reason="the published curves are in ../shared")
def test_no_published_curve_collapses() -> None:
    assert [name for name, curve in read().items() if report_on(curve).findings] == []


@given(st.lists(st.floats(1.0, 400.0), min_size=3, max_size=12), st.floats(0.01, 0.19))
def test_any_curve_falls_if_its_last_row_does(rates: list[float], share: float) -> None:
    rising = [(1 << (20 + number), rate) for number, rate in enumerate(sorted(rates))]
    assert not report_on(rising).findings
    last = (1 << 40, share * rising[-1][1])
    assert [one.code for one in report_on([*rising, last]).findings] == ["bandwidth-low"]
