"""Equal runs of a collective that swing."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1795230000.0


def report(rates: list[float], size: int = 1 << 33) -> Report:
    head = "#       size         count      type   redop     time   algbw   busbw  #wrong"
    rows = [
        f"{size} {size // 4} float sum {size / rate / 1e3 * 1.75:.0f} {rate / 1.75:.2f} {rate:.2f} 0" for rate in rates
    ]
    records = list(read_text("all_reduce.txt", "\n".join([head, *rows]), AT))
    return evaluate(assemble(records, Site(), AT, origin="dumps"))


def test_runs_that_swing_are_a_symptom_without_a_cause() -> None:
    found = report([480.0, 478.5, 201.0, 190.2, 475.0, 250.5, 479.0, 260.0])
    assert [(one.code, one.severity) for one in found.findings] == [("not-enough-evidence", "info")]
    assert "190.2 GB/s" in found.findings[0].message
    assert "480.0 GB/s" in found.findings[0].message
    assert found.verdict == "unknown"


@pytest.mark.parametrize(
    ("rates", "size"),
    [
        ([480.0, 478.5, 471.0, 475.0, 476.0, 474.0, 479.0], 1 << 33),  # noise
        ([190.0, 478.5, 471.0, 475.0, 476.0, 474.0, 479.0], 1 << 33),  # the first run sets up connections
        ([480.0, 201.0, 190.2], 1 << 33),  # too few
        ([48.0, 20.1, 19.0, 47.0, 25.0, 26.0, 44.0], 1 << 20),  # short messages
    ],
)
def test_other_runs_are_steady(rates: list[float], size: int) -> None:
    assert report(rates, size).findings == ()
