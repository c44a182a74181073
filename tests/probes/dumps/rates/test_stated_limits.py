"""A measured rate and its limit on two lines, in any words and languages."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.texts import report_of

LIMITS = ("Theoretical", "Largest possible bandwidth", "Expected", "Line rate", "理论带宽", "Theoretisch")
SEEN = ("Measured", "Largest observed average bandwidth", "Actual", "实测带宽", "Gemessen")
FORMS = (
    "{limit}: {most}\n{seen}: {rate}\n",
    "- {limit} = {most}\n\n- {seen} = {rate}\n",
    "{seen}: {rate}\n{limit}: {most}\n",
)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_rate_far_below_its_limit_is_named(limit: str) -> None:
    lost = []
    for seen, form in product(SEEN, FORMS[:2]):
        report = report_of(form.format(limit=limit, seen=seen, most="400 Gb/s", rate="15.49 GB/s"))
        if "bandwidth-low" not in {one.code for one in report.findings} or report.verdict == "ok":
            lost.append((seen, form))
    assert lost == []


@pytest.mark.parametrize("form", FORMS)
def test_a_rate_near_its_limit_is_none(form: str) -> None:
    for limit, seen in product(LIMITS, SEEN):
        report = report_of(form.format(limit=limit, seen=seen, most="50 GB/s", rate="48.6 GB/s"))
        assert [one.severity for one in report.findings if one.severity != "info"] == []


def test_a_limit_far_above_is_of_another_rate() -> None:
    between = "\n".join(f"note {number}" for number in range(8))
    report = report_of(f"Theoretical: 400 Gb/s\n{between}\nMeasured: 15.49 GB/s\n")
    assert "bandwidth-low" not in {one.code for one in report.findings}
