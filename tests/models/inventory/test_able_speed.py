"""The highest speed of a PCIe link: ports that hypervisors make up and switches with a wrong maximum show nothing."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.machine import Pci
from linkgauge.models.inventory.present import able_speed

GPU, BRIDGE = 0x030200, 0x060400


def function(pci_class: int, speed: float, most: float, vendor: int = 0x10DE, device: int = 0x2330) -> Pci:
    return Pci(
        key="0000:4b:00.0",
        pci_class=pci_class,
        vendor=vendor,
        device=device,
        speed=speed * 1e9,
        max_speed=most * 1e9,
    )


ROOT = function(BRIDGE, 32, 32, 0x8086, 0x352A)
AWS = function(BRIDGE, 2.5, 2.5, 0x1000, 0x0001)
QEMU = function(BRIDGE, 16, 16, 0x1B36, 0x000C)


@pytest.mark.parametrize(
    ("device", "port", "expected"),
    [
        (function(GPU, 2.5, 32), ROOT, 32e9),
        (function(GPU, 16, 16), ROOT, 16e9),
        (function(GPU, 32, 32), AWS, 32e9),
        (function(GPU, 2.5, 32), AWS, None),
        (function(GPU, 2.5, 32), QEMU, None),
        (function(BRIDGE, 32, 5), ROOT, 32e9),
        (function(BRIDGE, 2.5, 5), ROOT, None),
        (function(BRIDGE, 2.5, 16), ROOT, 16e9),
        (function(GPU, 2.5, 5), ROOT, 5e9),
    ],
)
def test_what_both_ends_support(device: Pci, port: Pci, expected: float | None) -> None:
    assert able_speed(device, port) == expected
