"""Lines of drivers that compare a PCIe link with what the adapter needs (models/catalog/messages/network.toml)."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.texts import found_in

WIDTH = "mlx4_core 0000:05:00.0: PCIe link width is x{}, device supports x{}\n"
SPEED = "mlx4_core 0000:05:00.0: PCIe link speed is {}GT/s, device supports {}GT/s\n"
STAMPS = ("[    9.120045] ", "Jul  3 11:20:05 n7 kernel: ", "")


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_driver_names_only_the_value_that_is_below(stamp: str) -> None:
    for width, speed in product((1, 2, 4, 8), ("2.5", "5.0", "8.0")):
        text = f"{stamp}{WIDTH.format(width, 8)}{stamp}{SPEED.format(speed, '8.0')}"
        expected = {"pcie-link-narrow"} if width < 8 else set()
        expected |= {"pcie-link-slow"} if speed != "8.0" else set()
        assert {code for code, _, _ in found_in(text)} == expected, text


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize(
    "line",
    [
        "i40e 0000:af:00.0: "
        "PCI-Express bandwidth available for this device may be insufficient for optimal performance.",
        "ixgbe 0000:af:00.0: This is not sufficient for optimal performance of this card.",
        "ixgbe 0000:af:00.0 eth4: This is not sufficient for optimal performance of this card.",
    ],
)
def test_an_adapter_of_intel_with_too_few_lanes(stamp: str, line: str) -> None:
    assert found_in(f"{stamp}{line}\n") == [("pcie-path-bottleneck", "warning", "0000:af:00.0")]
    assert not found_in(f"{stamp}i40e 0000:af:00.0: PCI-Express: Speed 8.0GT/s Width x8\n")
