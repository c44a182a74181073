"""The share of a GPU's memory rate is that of its product: the low of H100 was the acceptance limit of MI300X."""

from __future__ import annotations

import pytest

from linkgauge.models.bandwidth.efficiency import attainable

# Rated rate in bytes/s: BabelStream's triad in bytes/s (Azure's guides of these types; links.toml).
TRIADS = {3350e9: 2970e9, 4800e9: 4150e9, 8000e9: 7350e9, 2039e9: 1700e9}


@pytest.mark.parametrize("rated", TRIADS)
def test_a_product_has_its_own_interval(rated: float) -> None:
    share = TRIADS[rated] / rated
    found = attainable("hbm", "triad", rated=rated)
    assert found is not None
    assert (found.low, found.typical, found.high) == pytest.approx((0.85 * share, share, min(1.0, 1.15 * share)))
    assert found.high / found.low <= 1.4


def test_another_product_has_a_wider_interval() -> None:
    """Of a memory of 3,000 GB/s nothing is published. MI300X has a floor of 3,885.3 of 5,300 GB/s."""
    other, all_products = attainable("hbm", "triad", rated=3000e9), attainable("hbm", "triad")
    assert other is not None
    assert all_products is not None
    assert other.typical == all_products.typical
    assert other.low == pytest.approx(0.9 * 0.97 * 1700 / 2039)
    assert other.high > all_products.high
    mi300x = attainable("hbm", "triad", rated=5300e9)
    assert mi300x is not None
    assert mi300x.low == pytest.approx(0.97 * 3885.3 / 5300)


def test_links_have_no_products() -> None:
    assert attainable("pcie5x16", "copy", rated=3350e9) == attainable("pcie5x16", "copy")
