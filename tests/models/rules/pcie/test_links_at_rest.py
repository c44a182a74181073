"""Which PCIe links may be slow at rest: those of GPUs, accelerators and NVSwitches, and the ports above them."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Pci
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from tests.support.nodes.gpu_facts import BARE, NOW

BRIDGE = 0x060400


def function(key: str, parent: str, pci_class: int, vendor: int, speed: float) -> Pci:
    link = {"speed": speed, "max_speed": 8e9, "width": 16, "max_width": 16}
    return Pci(key=key, parent=parent, pci_class=pci_class, vendor=vendor, device=1, **link)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pci_class", "vendor", "found"),
    [
        (0x030200, 0x10DE, []),
        (0x0B4000, 0x1BCF, []),  # a vector engine of NEC
        (0x068000, 0x10DE, []),  # an NVSwitch
        (0x120000, 0x1E52, []),  # an accelerator of another maker
        (0x020700, 0x15B3, ["0000:18:00.0"]),
    ],
)
def test_the_uplink_of_a_switch_at_rest(pci_class: int, vendor: int, found: list[str]) -> None:
    """A NIC is below the switch, too."""
    records = [
        BARE,
        function("0000:17:00.0", "pci0000:17", BRIDGE, 0x8086, 2.5e9),
        function("0000:18:00.0", "0000:17:00.0", BRIDGE, 0x10B5, 2.5e9),
        function("0000:19:04.0", "0000:18:00.0", BRIDGE, 0x10B5, 8e9),
        function("0000:19:08.0", "0000:18:00.0", BRIDGE, 0x10B5, 8e9),
        function("0000:1a:00.0", "0000:19:04.0", 0x020700, 0x15B3, 8e9),
        function("0000:1b:00.0", "0000:19:08.0", pci_class, vendor, 8e9),
    ]
    report = evaluate(assemble(records, Site(), NOW))
    assert [one.subject for one in report.findings if one.code == "pcie-link-slow"] == found
