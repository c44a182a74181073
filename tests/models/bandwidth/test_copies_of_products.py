"""Copies of GPUs whose path is not known: who reaches the rate of the complete product is judged, others are not."""

from __future__ import annotations

import pytest

from linkgauge.models.bandwidth.efficiency import attainable
from linkgauge.models.catalog.gpus import Product, products
from linkgauge.models.facts.pcie_rates import rated, speed_of
from tests.support.texts import report_of

_NAMED = [one for one in products() if one.called and one.called[0].startswith("NVIDIA ") and not one.c2c_rate]
_MEASURED = [one for one in _NAMED if one.pcie in (3, 4, 5) and one.width == 16]
_SWITCHED = [one for one in _NAMED if one.links >= 12 and not one.bridged and one.link_version in (3, 4, 5)]


def _copies(product: Product, rate: float) -> str:
    return f"""nvbandwidth Version: v0.8
Device 0: {product.called[0]} (00000000:1b:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0   {rate / 1e9:.2f}

SUM host_to_device_memcpy_ce {rate / 1e9:.2f}
"""


def _pairs(product: Product, rate: float, back: float) -> str:
    named = "\n".join(
        f"Device: {gpu}, {product.called[0]}, pciBusID: {gpu + 16:x}, pciDeviceID: 0, pciDomainID:0" for gpu in (0, 1)
    )
    return f"""[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
{named}
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 1500.00 {rate / 1e9:.2f}
     1 {back / 1e9:.2f} 1500.00
"""


@pytest.mark.parametrize("product", _MEASURED, ids=lambda one: one.name)
@pytest.mark.parametrize(("share", "verdict"), [(0.87, "ok"), (0.44, "unknown"), (0.22, "unknown"), (1.2, "unknown")])
def test_a_copy_from_the_host_is_judged_where_it_reaches_the_rate(product: Product, share: float, verdict: str) -> None:
    report = report_of(_copies(product, share * rated(speed_of(product.pcie), product.width)))
    above = share > 1 and product.link_kind == "nvlink" and "SXM2" not in product.name  # which have NVLinks to POWER
    found = ["measurement-invalid"] if above else []
    assert (report.verdict, [one.code for one in report.findings]) == (verdict, found)


@pytest.mark.parametrize("product", _SWITCHED, ids=lambda one: one.name)
@pytest.mark.parametrize(("share", "verdict"), [(0.93, "ok"), (0.4, "unknown"), (0.05, "unknown")])
def test_a_copy_between_gpus_is_judged_where_it_reaches_the_rate(product: Product, share: float, verdict: str) -> None:
    assert product.link_rate
    rate = share * product.links * product.link_rate
    report = report_of(_pairs(product, rate, rate))
    assert (report.verdict, [one.code for one in report.findings]) == (verdict, [])


@pytest.mark.parametrize("product", _SWITCHED, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("of_low", "verdict", "found"), [(1.01, "ok", []), (0.98, "unknown", []), (0.5, "failed", ["bandwidth-low"])]
)
def test_the_other_direction_is_slower(product: Product, of_low: float, verdict: str, found: list[str]) -> None:
    """No equal flows show which rate is usual, so a rate just below that of good machines is neither good nor bad."""
    share = attainable(f"{product.link_kind}{product.link_version}", "copy", "device")
    assert share
    assert product.link_rate
    able = product.links * product.link_rate
    report = report_of(_pairs(product, share.typical * able, of_low * share.low * able))
    assert (report.verdict, [one.code for one in report.findings]) == (verdict, found)
