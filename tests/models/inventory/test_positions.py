"""Empty positions below equal PCIe switches, links that went down by surprise, and counts without evidence."""

from __future__ import annotations

from typing import Any

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.machine import Event, Node, Pci, Rdma
from linkgauge.models.facts.records import Evidence, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.positions import empty_positions, is_regular
from linkgauge.models.site.schema import Site

NOW = 2e9
METAL = Node(key="node", virtual=False, container="", booted=NOW - 86_400)
DEVICES: dict[str, dict[str, Any]] = {
    "gpu": {"pci_class": 0x030200, "vendor": 0x10DE, "device": 0x2BB5},
    "nic": {"pci_class": 0x020000, "vendor": 0x15B3, "device": 0x1021},
    "nvme": {"pci_class": 0x010802, "vendor": 0x144D, "device": 0xA80A},
}
BRIDGE: dict[str, Any] = {"pci_class": 0x060400, "vendor": 0x1000, "device": 0xC030}


def machine(*switches: tuple[str, ...]) -> list[Record]:
    """Equal switches with these devices."""
    records: list[Record] = [METAL]
    for number, devices in enumerate(switches):
        root, bus = f"0000:{number:02x}:01.0", 0x10 + 0x10 * number
        records.append(Pci(key=root, pci_class=0x060400, vendor=0x8086, device=0x352A))
        up = f"0000:{bus:02x}:00.0"
        records.append(Pci(key=up, parent=root, numa=number % 2, **BRIDGE))
        for slot, kind in enumerate(devices, start=1):
            port, device = f"0000:{bus + 1:02x}:{slot:02x}.0", f"0000:{bus + 1 + slot:02x}:00.0"
            records.append(Pci(key=port, parent=up, **BRIDGE))
            records.append(Pci(key=device, parent=port, **DEVICES[kind]))
    return records


FULL = ("gpu", "nic")


@pytest.mark.parametrize(
    ("switches", "found"),
    [
        ([FULL] * 4, []),
        ([FULL, FULL, FULL, ("gpu",)], [("0000:40:00.0", "nic", 0, 1, 3)]),
        ([("gpu", "gpu")] * 3 + [("gpu",)], [("0000:40:00.0", "gpu", 1, 2, 3)]),
        ([("nic",), ("gpu",)] * 4, []),
        ([("nic",)] * 8 + [("gpu",)] * 7, []),  # eight of fifteen are no majority: the roles differ
        ([("gpu",)] * 8 + [("nic",)] * 7, []),
        ([FULL] * 6 + [("nic",)] * 2, []),  # several alike: another role
        ([FULL] * 3 + [("nvme", "gpu")], []),  # other devices: another role
        ([FULL, FULL, ("gpu",)], []),
    ],
)
def test_empty_positions(switches: list[tuple[str, ...]], found: list[tuple[str, str, int, int, int]]) -> None:
    snapshot = assemble(machine(*switches), Site(), NOW)
    assert [(one.switch, one.kind, one.have, one.usual, one.agree) for one in empty_positions(snapshot)] == found


@pytest.mark.parametrize(
    ("switches", "regular"),
    [
        ([FULL] * 4, True),
        ([FULL] * 3 + [("gpu",)], False),
        ([FULL, ("gpu",)] * 2, False),
        ([FULL] * 2, False),
        ([FULL] * 3, False),  # two of them near one NUMA node, one near the other
        ([FULL] * 5, False),
    ],
)
def test_only_equal_numbers_below_equal_switches_are_evidence(switches: list[tuple[str, ...]], regular: bool) -> None:
    assert is_regular(assemble(machine(*switches), Site(), NOW), "nic") == regular


def uncorroborated(records: list[Record], origin: str = "live") -> set[str]:
    report = evaluate(assemble(records, Site(), NOW, origin=origin))  # type: ignore[arg-type]
    return {one.subject for one in report.coverage.uncorroborated if one.subject.startswith("number of")}


RDMA, OTHER = "number of RDMA NICs", "number of NICs without RDMA"
DISKS, CONTROLLERS, GPUS = "number of NVMe disks", "number of storage controllers", "number of GPUs"


@pytest.mark.parametrize(
    ("records", "origin", "listed"),
    [
        (machine(("nic",)), "live", {RDMA, OTHER, DISKS, CONTROLLERS}),
        ([*machine(("nic",)), Driver(key="nvidia")], "live", {RDMA, OTHER, DISKS, CONTROLLERS, GPUS}),
        (
            [*machine(("nic", "nvme")), Rdma(key="mlx5_0", address="0000:12:00.0")],
            "live",
            {RDMA, DISKS, CONTROLLERS},
        ),
        ([Node(key="node", virtual=True), *machine(("nic", "nvme"))[1:]], "live", {OTHER, DISKS}),
        ([Node(key="node", virtual=True), *machine(("gpu",))[1:]], "live", {RDMA, DISKS, GPUS}),
        ([*machine(FULL), Gpu(key="gpu0", address="0000:12:00.0")], "dumps", {GPUS, OTHER, CONTROLLERS}),
        (machine(*[("gpu", "nic")] * 4), "live", {RDMA, OTHER, DISKS, CONTROLLERS}),  # the GPUs are regular
    ],
)
def test_counts_without_evidence(records: list[Record], origin: str, listed: set[str]) -> None:
    """A count of zero is listed where the whole machine is visible."""
    assert uncorroborated(records, origin) == listed


@pytest.mark.parametrize("counted", [False, True])
def test_a_link_that_went_down_by_surprise(counted: bool) -> None:
    """The error counters of a port do not count these events."""
    records = [one for one in machine(("gpu", "nic")) if one != machine(("gpu", "nic"))[-1]]
    port = "0000:11:02.0"
    line = f"pcieport {port}: pciehp: Slot(12): Link Down"
    records.append(Event(key=f"surprise down {port}", kind="surprise down", subject=port, text=line, at=NOW - 60))
    if counted:
        zero = Evidence("aer_dev_correctable", "0")
        records.append(
            Observation(about=port, quantity="aer_correctable", unit="count", value=0, at=NOW, evidence=zero)
        )
    found = [one for one in evaluate(assemble(records, Site(), NOW)).findings if one.code == "pcie-errors"]
    assert [(one.subject, one.severity) for one in found] == [(port, "info")]
