"""A device with a finding that disappears is not repaired: its finding is stale until an operator accepts the node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import Recorded
from tests.support.machine_parts import without_entries
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, with_entry

SLOW = 900.0  # seconds, after which disks and arrays are read again
NET = "sys/devices/pci0000:00/0000:00:03.0/0000:03:00.0/net/eth0"


def found(report: Report) -> list[tuple[str, str, bool]]:
    findings = (one for one in report.findings if one.severity != "info")
    return [(one.code, one.subject, one.stale is not None) for one in findings]


def array_without_member(recorded: Recorded) -> Recorded:
    return without_entries(recorded, "/md0/md/dev-nvme2n1", "/md0/slaves/nvme2n1")


def port_without_carrier(recorded: Recorded) -> Recorded:
    return with_entry(with_entry(recorded, f"{NET}/carrier", "0"), f"{NET}/operstate", "down")


@pytest.mark.parametrize(
    ("name", "broken", "removed", "code", "subject"),
    [
        ("server-raid", array_without_member, ("/block/md0",), "storage-degraded", "md0"),
        ("desktop", port_without_carrier, ("/net/eth0",), "nic-port-down", "eth0"),
    ],
)
def test_a_device_with_a_finding_that_disappears(
    service: Callable[..., Node],
    tmp_path: Path,
    name: str,
    broken: Callable[[Recorded], Recorded],
    removed: tuple[str, ...],
    code: str,
    subject: str,
) -> None:
    one = service(tmp_path, name=name)
    one.cycle(2)
    one.host.recorded = broken(node(name))
    for _ in range(3):
        one.go(SLOW)
        report = one.cycle()
    assert (code, subject, False) in found(report)
    one.host.recorded = without_entries(one.host.recorded, *removed)
    for _ in range(4):
        one.go(SLOW)
        report = one.cycle()
    assert (code, subject, True) in found(report)
    assert {finding.stale for finding in report.findings if finding.subject == subject} == {f"{subject} is absent"}
    one.daemon.memory = replace(one.daemon.memory, accepted=one.host.now())
    one.go(SLOW)
    assert (code, subject) not in [known[:2] for known in found(one.cycle())]
