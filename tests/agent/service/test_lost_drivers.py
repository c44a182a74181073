"""Devices that are on the bus and that no driver uses any more; and those that an operator gave to a guest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.inventory.inventory import accepted_now
from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import Recorded
from tests.support.machine_parts import unbound, without_entries, without_nvme_controller
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, report_of

HOUR = 3600.0  # after which all functions are read again
DISK, RDMA = "0000:1d:00.0", "0000:1c:00.0"
DISKS = [f"0000:{bus}:00.0" for bus in ("1d", "20", "3d", "40", "9d", "a0", "bd", "c0")]
NIC = "0000:03:00.0"
LOST = [("warning", "storage-missing", DISK)]


def found(report: Report) -> list[tuple[str, str, str]]:
    return [(one.severity, one.code, one.subject) for one in report.findings]


def after(one: Node, recorded: Recorded) -> list[tuple[str, str, str]]:
    """The findings after some hours of a service whose machine has changed."""
    one.host.recorded = recorded
    for _ in range(4):
        one.go(HOUR)
        report = one.cycle()
    assert not any(finding.stale for finding in report.findings)
    return found(report)


@pytest.mark.parametrize(
    ("name", "address", "severity", "code"),
    [
        ("hgx-h100", DISK, "warning", "storage-missing"),
        ("desktop", NIC, "warning", "nic-missing"),
        ("mi300x", "0000:0c:00.0", "critical", "gpu-driver-failed"),
        ("hgx-h100", "0000:d9:00.0", "critical", "nvswitch-error"),
        ("hgx-h100", "0000:1b:00.0", "critical", "gpu-driver-failed"),
    ],
)
def test_a_device_that_lost_its_driver(
    service: Callable[..., Node], tmp_path: Path, name: str, address: str, severity: str, code: str
) -> None:
    one = service(tmp_path, name=name)
    assert one.cycle(2).verdict == "ok"
    assert after(one, unbound(node(name), address)) == [(severity, code, address)]
    assert after(one, node(name)) == []


@pytest.mark.parametrize(("name", "address"), [("hgx-h100", DISK), ("desktop", NIC), ("hgx-h100", RDMA)])
def test_a_device_that_is_handed_to_a_guest(
    service: Callable[..., Node], tmp_path: Path, name: str, address: str
) -> None:
    one = service(tmp_path, name=name)
    one.cycle(2)
    assert after(one, unbound(node(name), address, "vfio-pci")) == []


def test_a_drive_whose_driver_has_no_controller_for_it(service: Callable[..., Node], tmp_path: Path) -> None:
    one = service(tmp_path)
    one.cycle(2)
    assert after(one, without_nvme_controller(node("hgx-h100"), DISK)) == LOST


def test_a_drive_that_lost_its_namespace(service: Callable[..., Node], tmp_path: Path) -> None:
    one = service(tmp_path)
    one.cycle(2)
    assert after(one, without_entries(node("hgx-h100"), "/nvme0n1")) == LOST
    assert after(one, node("hgx-h100")) == []


def test_without_an_earlier_inventory_a_drive_without_driver_is_a_warning() -> None:
    report = report_of(unbound(node("hgx-h100"), DISK))
    assert found(report) == LOST
    assert report.findings[0].confidence == "likely"
    assert found(report_of(without_nvme_controller(node("hgx-h100"), DISK))) == LOST


def test_drives_that_never_had_a_driver() -> None:
    """All of them: the machine does not use the kernel's driver. Or one for a guest."""
    machine = node("hgx-h100")
    for address in DISKS:
        machine = unbound(machine, address)
    assert found(report_of(machine)) == []
    assert found(report_of(unbound(node("hgx-h100"), DISK, "vfio-pci"))) == []


def test_a_drive_without_driver_that_an_operator_accepted(service: Callable[..., Node], tmp_path: Path) -> None:
    one = service(tmp_path)
    one.host.recorded = unbound(node("hgx-h100"), DISK)
    assert found(one.cycle(3)) == LOST
    memory = one.daemon.memory
    assert memory.last
    one.daemon.memory = replace(memory, accepted=one.host.now(), inventory=accepted_now(memory.last))
    assert after(one, one.host.recorded) == []
