"""Cards that a bridge may join: a rate above that of PCIe shows the bridge, and is compared with its complete links."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

NAMES = ("NVIDIA H100 PCIe", "NVIDIA A100 80GB PCIe", "NVIDIA RTX A6000")
LINKS = {"NVIDIA H100 PCIe": 300.0, "NVIDIA A100 80GB PCIe": 300.0, "NVIDIA RTX A6000": 56.25}  # GB/s of the bridge


def matrix(name: str, first: float, second: float, apart: float) -> str:
    """Four cards: 0 and 1, and 2 and 3 are joined."""
    devices = "".join(
        f"Device: {gpu}, {name}, pciBusID: {gpu + 16:x}, pciDeviceID: 0, pciDomainID:0\n" for gpu in range(4)
    )
    rates = {(0, 1): first, (1, 0): first, (2, 3): second, (3, 2): second}
    rows = (
        f"{row:6}"
        + "".join(f" {rates.get((row, column), 1600.0 if row == column else apart):7.2f}" for column in range(4))
        for row in range(4)
    )
    title = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1      2      3\n"
    return devices + title + "\n".join(rows) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_joined_pairs_at_their_rate_are_ok(name: str) -> None:
    full = 0.87 * LINKS[name]
    report = report_of(matrix(name, full, full, 20.0))
    assert [one for one in report.findings if one.severity != "info"] == []


def test_a_bridge_with_fewer_links_is_named() -> None:
    report = report_of(matrix("NVIDIA H100 PCIe", 256.0, 170.0, 25.0))
    found = {one.subject for one in report.findings if one.code == "bandwidth-low" and one.severity != "info"}
    assert found
    assert all("gpu2" in subject or "gpu3" in subject for subject in found)


def test_cards_without_a_bridge_have_no_such_rate() -> None:
    report = report_of(matrix("NVIDIA H100 PCIe", 25.0, 25.0, 25.0))
    assert not any("NVLink" in (one.expected_source or "") for one in report.findings)
