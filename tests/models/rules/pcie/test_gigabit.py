"""Adapters of 1 Gb/s lose nothing on a narrow link."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.machine import Pci
from linkgauge.models.rules.pcie.link_claims import is_gigabit


@pytest.mark.parametrize(
    ("name", "slow"),
    [
        ("Broadcom NetXtreme BCM5720 Gigabit Ethernet PCIe", True),
        ("Intel I350 Gigabit Network Connection", True),
        ("Intel Ethernet Controller 10-Gigabit X540-AT2", False),
        ("Intel 82599ES 10-Gigabit SFI/SFP+ Network Connection", False),
        ("Intel Ethernet Controller 10 Gigabit Network X550", False),
        ("Mellanox MT27800 Family [ConnectX-5] 100 Gigabit Ethernet", False),
        ("Broadcom BCM57414 NetXtreme-E 10Gb/25Gb RDMA Ethernet Controller", False),
        (None, False),
    ],
)
def test_only_adapters_of_one_gigabit(name: str | None, slow: bool) -> None:
    assert is_gigabit(Pci(key="0000:01:00.0", name=name)) is slow
