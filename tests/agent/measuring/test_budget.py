"""The time limit of measurements, in the format of the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.measuring.budget import BUDGETS, Budget, budget_of


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("30s", Budget(30, BUDGETS["quick"].bytes)),
        ("20GB", Budget(15, 20e9)),
        ("2.5s, 1.5tb", Budget(2.5, 1.5e12)),
        ("100MB,1s", Budget(1, 1e8)),
    ],
)
def test_what_is_written(text: str, budget: Budget) -> None:
    assert budget_of(text, "quick") == budget


@given(st.text())
def test_anything_is_a_budget_or_refused_in_a_sentence(text: str) -> None:
    try:
        found = budget_of(text, "full")
    except ValueError as wrong:
        assert str(wrong).endswith(": seconds are written 30s, bytes 20GB, both 30s,20GB")  # noqa: PT017
    else:
        assert found.seconds >= 0
        assert found.bytes >= 0
