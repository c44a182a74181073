"""Shares of the rated rate, computed from measurements."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.bandwidth.efficiency import ABOVE_THE_WIRE, attainable, family
from linkgauge.models.catalog.links import Links, Measured, links
from linkgauge.models.site.toml_tables import read_tables

GRADES = sorted({row.grade for row in links().measured} | set(links().like))
OPS = sorted({row.op for row in links().measured})


def row(rate: float, platform: str, **more: object) -> Measured:
    fields = {"grade": "pcie4", "rate": rate, "of": 100.0, "platform": platform, "source": "here", **more}
    return msgspec.convert(fields, Measured)


def known(*rows: Measured, **like: str) -> Links:
    return Links(like=like, measured=rows, sized=())


@given(st.sampled_from(GRADES), st.sampled_from(OPS), st.sampled_from(["", "device", "host"]), st.booleans())
def test_a_share_is_an_interval_with_a_source(grade: str, op: str, towards: str, duplex: bool) -> None:
    reach = attainable(grade, op, towards, duplex)
    if reach:
        assert 0 < reach.low < reach.typical < reach.high
        assert reach.high <= 1 or op in ABOVE_THE_WIRE
        assert "measured" in reach.source


@pytest.mark.parametrize("row", links().measured, ids=lambda row: f"{row.grade} {row.op} {row.platform}")
def test_what_was_measured_lies_within_its_share(row: Measured) -> None:
    reach = attainable(row.grade, row.op, row.towards, row.duplex)
    assert reach
    assert reach.low <= row.rate / row.of <= reach.high


def test_the_median_of_machines_and_a_margin() -> None:
    three = known(row(80, "a"), row(84, "a"), row(85, "b"), row(90, "c"))
    reach = attainable("pcie4x8", known=three)
    assert reach
    assert (reach.low, reach.typical, reach.high) == pytest.approx((0.8 * 0.97, 0.85, 0.9 * 1.03))


def test_fewer_machines_have_a_wider_margin() -> None:
    one, two = known(row(80, "a")), known(row(80, "a"), row(80, "b"))
    lows = [reach.low for catalog in (one, two) if (reach := attainable("pcie4", known=catalog))]
    assert lows == pytest.approx([0.68, 0.72])


def test_a_floor_lowers_the_low_and_not_the_typical() -> None:
    reach = attainable("pcie4", known=known(row(80, "a"), row(60, "b", floor=True)))
    assert reach
    assert (reach.low, reach.typical) == pytest.approx((0.6 * 0.9, 0.8))


def test_floors_alone_do_not_limit_the_highest_share() -> None:
    reach = attainable("pcie4", known=known(row(60, "a", floor=True)))
    assert reach
    assert (reach.low, reach.typical, reach.high) == pytest.approx((0.51, 0.6, 1.0))


def test_duplex_shares_are_separate_for_each_direction() -> None:
    rows = row(80, "a"), row(50, "a", towards="device", duplex=True)
    found = [attainable("pcie4", "copy", way, True, known(*rows)) for way in ("device", "host")]
    assert [reach.typical for reach in found if reach] == [0.5, 0.8]


def test_nothing_is_reached_beyond_the_wire() -> None:
    reach = attainable("pcie4", known=known(row(99, "a")))
    assert reach
    assert reach.high == 1.0


def test_directions_are_apart_and_a_row_without_one_counts_for_both() -> None:
    catalog = known(row(80, "a", towards="device"), row(90, "a", towards="host"), row(70, "b"))
    down, up = attainable("pcie4", "copy", "device", known=catalog), attainable("pcie4", "copy", "host", known=catalog)
    assert down
    assert up
    assert (down.typical, up.typical) == pytest.approx((0.75, 0.8))


def test_duplex_is_as_one_direction_without_a_measurement() -> None:
    alone = known(row(80, "a"))
    assert attainable("pcie4", duplex=True, known=alone) == attainable("pcie4", known=alone)
    both = attainable("pcie4", duplex=True, known=known(row(80, "a"), row(50, "a", duplex=True)))
    assert both
    assert both.typical == 0.5


def test_what_is_borrowed_says_so_and_is_wider() -> None:
    catalog = known(row(80, "a"), pcie6="pcie5", pcie5="pcie4")
    borrowed = attainable("pcie6x16", known=catalog)
    assert borrowed
    assert (borrowed.low, borrowed.typical) == pytest.approx((0.8 * 0.68, 0.8))
    assert (
        borrowed.source == "none is published of copy over pcie6x16; of copy over pcie4 GB/s measured: a 8e-08 of 1e-07"
    )


@pytest.mark.parametrize(("grade", "op"), [("", "copy"), ("upi", "copy"), ("ddr4", "copy"), ("hbm", "scale")])
def test_without_measurements_nothing_is_attainable(grade: str, op: str) -> None:
    assert attainable(grade, op) is None


def test_a_circle_of_likes_ends() -> None:
    assert attainable("a", known=known(a="b", b="a")) is None


def test_the_width_makes_no_difference() -> None:
    assert [family(grade) for grade in ("pcie4x8", "pcie5", "nvlink4", "x8")] == ["pcie4", "pcie5", "nvlink4", "x8"]


def test_between_the_two_known_formulas() -> None:
    """NCCL's plan below and UCX's estimate above (efficiency.py), for measured copies."""
    for generation in (3, 4, 5):
        for towards in ("device", "host"):
            reach = attainable(f"pcie{generation}", "copy", towards)
            assert reach
            assert 0.76 < reach.typical < 0.896


ROW = 'grade = "pcie4", rate = 1e9, of = 2e9, platform = "a", source = "b"'


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (ROW.replace("rate", "rat"), "measured 1: rat: unknown key; did you mean rate?"),
        (ROW.replace("1e9", "-1e9"), "measured 1: rate: expected float > 0.0"),
        (ROW.replace(', source = "b"', ""), "measured 1: source: missing"),
        (ROW + ', towards = "up"', "measured 1: towards: invalid enum value 'up'"),
    ],
)
def test_a_row_with_a_mistake_is_refused_by_table_and_key(row: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=".") as refused:
        read_tables(f"measured = [{{{row}}}]\nsized = []\n[like]\n", Links)
    assert str(refused.value) == wrong
