"""The rate as a function of the message size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.bandwidth.message_size import Curve, curve
from linkgauge.models.catalog.links import links

curves = st.builds(Curve, st.floats(1e3, 1e9), st.none() | st.floats(1e3, 1e10), st.none() | st.floats(1e-6, 1e-3))
sizes = st.integers(1, 1 << 40)


@given(curves, sizes, sizes)
def test_larger_messages_are_never_slower(one: Curve, size: int, other: int) -> None:
    small, large = sorted((size, other))
    assert 0 <= one.share(small) <= one.share(large) <= 1


@given(curves, sizes)
def test_low_typical_high(one: Curve, size: int) -> None:
    low, typical, high = one.bounds(size)
    assert low <= typical <= high


def test_half_and_nine_tenths_are_where_they_were_read() -> None:
    one = Curve(580_000, 8_100_000, None)
    assert one.share(580_000) == pytest.approx(0.5)
    assert one.share(8_100_000) == pytest.approx(0.9)


def test_with_the_half_alone_it_is_a_constant_latency() -> None:
    one = Curve(1000, None, None)
    assert [one.share(size) for size in (500, 1000, 9000)] == pytest.approx([1 / 3, 0.5, 0.9])


def test_a_link_without_measurements_has_the_curve_of_the_nearest() -> None:
    assert curve("pcie7x16", "copy") == curve("pcie4x16", "copy")
    assert curve("nvlink3", "copy") == curve("xgmi", "copy") == curve("nvlink5", "copy")  # of another generation
    assert curve("upi", "copy") == Curve(None, None, None)


# GB/s of host copies over PCIe 4 by size, as SuperBench's rocm_memory_h2d_bw of an MI100 prints them.
@pytest.mark.parametrize(
    ("size", "rate"), [(512 << 10, 12.0), (1 << 20, 16.3), (2 << 20, 20.0), (4 << 20, 22.3), (16 << 20, 24.2)]
)
def test_the_shape_is_that_of_a_measured_curve(size: int, rate: float) -> None:
    low, typical, high = (25.33 * share for share in curve("pcie4", "copy").bounds(size))
    assert low <= rate <= high
    assert typical == pytest.approx(rate, rel=0.05)


def test_rows_are_of_grades_and_operations_that_have_shares() -> None:
    shares = {(row.grade, row.op) for row in links().measured}
    assert {(row.grade, row.op) for row in links().sized} <= shares
