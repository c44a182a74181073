from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.averages import mean, median

VALUES = st.lists(st.floats(0, 1e15) | st.integers(0, 1 << 40), min_size=1, max_size=9)


@given(VALUES)
def test_same_as_the_standard_library(values: list[float]) -> None:
    assert (median(iter(values)), mean(iter(values))) == (statistics.median(values), statistics.fmean(values))
