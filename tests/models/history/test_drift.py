"""Changes of a rate in thirty days of hourly measurements with 1 % noise."""

from __future__ import annotations

from random import Random

import pytest

from linkgauge.models.history.drift import drift

HOUR, DAY = 3600.0, 86400.0
RATE = 55e9


def series(seed: int, days: float, change: float = 0.0, busy: float = 0.0) -> list[tuple[float, float]]:
    """Hourly rates; from day 20 on lower by `change`. A share `busy` of them is at half the rate."""
    random = Random(seed)
    times = [hour * HOUR for hour in range(int(days * 24))]
    return [
        (at, random.gauss(RATE, 0.01 * RATE) * (1 - change * (at >= 20 * DAY)) * (0.5 if random.random() < busy else 1))
        for at in times
    ]


@pytest.mark.parametrize("busy", [0.0, 0.02])
def test_three_percent_are_found_within_a_day(busy: float) -> None:
    found = [drift(series(seed, 21, 0.03, busy)) for seed in range(50)]
    exact = [one for one in found if one and abs(one.start - 20 * DAY) <= DAY and 0.96 < one.after / one.before < 0.98]
    assert len(exact) >= 48


@pytest.mark.parametrize("busy", [0.0, 0.02])
def test_without_a_change_there_is_none(busy: float) -> None:
    assert [seed for seed in range(200) if drift(series(seed, 30, busy=busy))] == []


def test_few_or_equal_rates_have_no_change() -> None:
    assert drift([]) is None
    assert drift(series(1, 0.5)) is None
    assert drift([(float(at), RATE) for at in range(100)]) is None
