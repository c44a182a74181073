"""A switch with fewer devices than its equals: a GPU is missed, a disk only mentioned."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from tests.support.nodes.gpu_facts import BARE, NOW

BRIDGE, GPU, NIC, NVME = 0x060400, 0x030200, 0x020700, 0x010802


def switch(bus: int, *classes: int) -> list[Record]:
    """A root port, a switch, and a device of each class below a downstream port of its own."""
    root, up = f"0000:{bus:02x}:00.0", f"0000:{bus + 1:02x}:00.0"
    found: list[Record] = [function(root, f"pci0000:{bus:02x}", BRIDGE), function(up, root, BRIDGE)]
    for number, pci_class in enumerate(classes):
        down = f"0000:{bus + 2:02x}:{number:02x}.0"
        found += [function(down, up, BRIDGE), function(f"0000:{bus + 3 + number:02x}:00.0", down, pci_class)]
    return found


def function(key: str, parent: str, pci_class: int) -> Pci:
    vendor = 0x10DE if pci_class == GPU else 0x1000
    return Pci(key=key, parent=parent, pci_class=pci_class, vendor=vendor, device=pci_class >> 8)


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        (None, []),
        (GPU, [("gpu-missing", "0000:81:00.0", "warning")]),
        (NIC, [("nic-missing", "0000:81:00.0", "warning")]),
        (NVME, [("storage-missing", "0000:81:00.0", "info")]),
    ],
)
def test_one_of_four_switches_has_fewer_devices(missing: int | None, found: list[tuple[str, str, str]]) -> None:
    every = (GPU, NIC, NVME)
    records = [BARE, *switch(0x20, *every), *switch(0x40, *every), *switch(0x60, *every)]
    records += switch(0x80, *(one for one in every if one != missing))
    report = evaluate(assemble(records, Site(), NOW))
    seen = [(one.code, one.subject, one.severity) for one in report.findings if one.code.endswith("-missing")]
    assert seen == found
