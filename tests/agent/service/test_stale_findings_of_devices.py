"""A device with a finding that disappears, and a state that its driver reports no more, are no repair: the finding is
stale until an operator accepts the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.service import checkpoint
from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.node import BOOT_ID
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


GPU = "0000:3b:00.0"  # gpu2


def with_fields(recorded: Recorded, **fields: str | None) -> Recorded:
    """The driver reports these values of gpu2. It does not report those that are None."""

    def changed(line: str) -> str:
        for name, value in fields.items():
            line = re.sub(rf',"{name}":[^,}}\]]+', f',"{name}":{value}' if value is not None else "", line)
        return line

    nvml = tuple(changed(line) if line.startswith('["Gpu",{"key":"gpu2"') else line for line in recorded.calls["nvml",])
    return Recorded(recorded.taken, recorded.entries, {**recorded.calls, ("nvml",): nvml})


@pytest.mark.parametrize(
    ("name", "fault", "code"),
    [
        ("remap_failed", "true", "gpu-row-remap"),
        ("sram_threshold", "true", "gpu-ecc"),
        ("fabric_state", '"in progress"', "nvlink-fabric-incomplete"),
        ("ecc", "false", "gpu-mode"),
    ],
)
def test_a_state_that_the_driver_reports_no_more(
    service: Callable[..., Node], tmp_path: Path, name: str, fault: str, code: str
) -> None:
    one = service(tmp_path)
    healthy = one.host.recorded
    one.host.recorded = with_fields(healthy, **{name: fault})
    before = found(one.cycle(3))
    assert code in {known[0] for known in before}
    one.host.recorded = with_fields(healthy, **{name: None})
    report = one.cycle(4)
    assert {(known[0], known[2]) for known in found(report)} == {(code, True)}
    assert report.verdict == "unknown"
    one.host.recorded = healthy
    assert found(one.cycle(3)) == []


def test_a_state_that_a_gpu_never_had(service: Callable[..., Node], tmp_path: Path) -> None:
    """GPUs before Ampere have no remapping failures: a boot ends a retirement of pages that waits for it."""
    one = service(tmp_path)
    old = with_entry(with_fields(node("hgx-h100"), remap_failed=None), BOOT_ID, "one")
    one.host.recorded = with_fields(old, remap_pending="true")
    assert found(one.cycle(3)) == [("gpu-row-remap", GPU, False)]
    one.daemon.save()
    after = service(tmp_path)
    after.host.recorded = with_entry(old, BOOT_ID, "two")
    after.daemon.memory = checkpoint.load(str(tmp_path), Memory(boot_id="two"), after.host.now())
    assert found(after.cycle(3)) == []
