"""Findings from the kernel's log stay when the log no longer holds their lines: that repairs nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.service import checkpoint
from linkgauge.agent.state import inventory_file
from linkgauge.agent.state.acceptance import Acceptance
from linkgauge.models.diagnosis.hysteresis import stale_findings
from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.node import BOOT_ID
from tests.support.machine_parts import without_device, without_nvme_controller
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, with_entry

KMSG, STAT, MOUNTS = "dev/kmsg", "proc/stat", "proc/1/mounts"
DAY = 86400.0
DRIVE, GPU = "0000:1d:00.0", "0000:1e:00.0"
GAVE_UP = "nvme nvme0: Removing after probe failure status: -19"
XID = f"NVRM: Xid (PCI:{GPU}): 79, pid=1, name=x, GPU has fallen off the bus."
GSP = "NVRM: Xid (PCI:0000:1e:00): 119, pid=1, name=x, Timeout waiting for RPC from GSP"
MEDIUM = "critical medium error, dev sda, sector 12345 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
REMOUNTED = "EXT4-fs (sda1): Remounting filesystem read-only"


def record(text: str, seconds: float = 86_000) -> str:
    return f"3,900,{seconds * 1e6:.0f},-;{text}"


def of_log(recorded: Recorded, text: str, seconds: float = 86_000) -> Recorded:
    """The machine whose log holds only this line. Its buffer has lost the beginning."""
    return with_entry(recorded, KMSG, record(text, seconds))


def read_only(recorded: Recorded) -> Recorded:
    mounts = recorded.read(MOUNTS) or ""
    return with_entry(recorded, MOUNTS, mounts.replace("/dev/sda1 / ext4 rw,relatime", "/dev/sda1 / ext4 ro,relatime"))


def found(report: Report) -> list[tuple[str, str, str]]:
    return [(one.code, one.subject, one.severity) for one in report.findings if one.severity != "info"]


def restarted(service: Callable[..., Node], one: Node, boot_id: str, after_seconds: float = 60) -> Node:
    """The service after a restart, in this boot. A negative time: the clock was set back."""
    one.daemon.save()
    after = service(Path(one.daemon.folder))
    after.host.recorded, after.host.wall = (
        with_entry(one.host.recorded, BOOT_ID, boot_id),
        one.host.wall + after_seconds,
    )
    inventory, last = inventory_file.load(one.daemon.folder, Acceptance(), boot_id)
    memory = Memory(boot_id=boot_id, inventory=inventory, last=last)
    after.daemon.memory = checkpoint.load(one.daemon.folder, memory, after.host.now())
    return after


@pytest.mark.parametrize(
    ("broken", "line", "expected"),
    [
        (lambda one: without_nvme_controller(one, DRIVE), GAVE_UP, ("storage-degraded", "nvme0", "critical")),
        (lambda one: without_device(one, GPU), XID, ("gpu-missing", GPU, "critical")),
        (read_only, REMOUNTED, ("storage-degraded", "sda1", "critical")),
        (lambda one: one, MEDIUM, ("storage-degraded", "sda", "warning")),
        (lambda one: one, GSP, ("gpu-xid", GPU, "critical")),
    ],
)
def test_a_finding_stays_when_its_lines_are_overwritten(
    service: Callable[..., Node],
    tmp_path: Path,
    broken: Callable[[Recorded], Recorded],
    line: str,
    expected: tuple[str, str, str],
) -> None:
    one = service(tmp_path)
    one.host.recorded = with_entry(node("hgx-h100"), BOOT_ID, "one")
    assert one.cycle().verdict == "ok"
    one.host.recorded = of_log(broken(one.host.recorded), line)
    one.go(900)  # disks and mounts are read again
    before = one.cycle(3)
    assert expected in found(before)
    one.host.recorded = of_log(one.host.recorded, "systemd: hello", 86_300)
    after = one.cycle(4)
    assert found(after) == found(before)
    assert not any(finding.stale for finding in after.findings)
    again = restarted(service, one, "one")
    assert found(again.cycle(4)) == found(before)


def lost_drive(service: Callable[..., Node], folder: Path) -> Node:
    """A service with a drive that the kernel gave up. Its log no longer holds the line."""
    one = service(folder)
    one.host.recorded = with_entry(node("hgx-h100"), BOOT_ID, "one")
    one.cycle()
    one.host.recorded = of_log(without_nvme_controller(one.host.recorded, DRIVE), GAVE_UP)
    one.cycle(3)
    one.host.recorded = of_log(one.host.recorded, "systemd: hello", 86_300)
    assert ("storage-degraded", "nvme0", "critical") in found(one.cycle(4))
    return one


def test_a_state_from_the_log_stays_for_more_than_a_day(service: Callable[..., Node], tmp_path: Path) -> None:
    one = lost_drive(service, tmp_path)
    one.go(3 * DAY)
    assert ("storage-degraded", "nvme0", "critical") in found(one.cycle(3))


def test_the_drive_that_answers_again_ends_the_finding(service: Callable[..., Node], tmp_path: Path) -> None:
    one = lost_drive(service, tmp_path)
    one.host.recorded = of_log(with_entry(node("hgx-h100"), BOOT_ID, "one"), "systemd: hello", 86_300)
    assert found(one.cycle(4)) == []


def test_a_boot_ends_the_events_of_the_boot_before(service: Callable[..., Node], tmp_path: Path) -> None:
    one = lost_drive(service, tmp_path)
    healthy = with_entry(node("hgx-h100"), STAT, f"btime {one.host.now() + 30:.0f}")
    one.host.recorded = with_entry(healthy, KMSG, "6,0,1,-;Linux version 6.8")
    again = restarted(service, one, "two")
    assert found(again.cycle(3)) == []
    assert again.daemon.memory.events == ()


def test_an_acceptance_ends_the_events_that_the_log_no_longer_holds(
    service: Callable[..., Node], tmp_path: Path
) -> None:
    one = lost_drive(service, tmp_path)
    one.daemon.memory = replace(one.daemon.memory, accepted=one.host.now())
    one.go(60)
    one.cycle()
    assert one.daemon.memory.events == ()


def test_a_clock_that_was_set_back_loses_no_finding(
    service: Callable[..., Node], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = service(tmp_path)
    one.host.recorded = with_entry(node("hgx-h100"), BOOT_ID, "one")
    one.cycle(2)
    one.host.recorded = of_log(one.host.recorded, GSP)
    assert found(one.cycle()) == [("gpu-xid", GPU, "critical")]
    one.host.recorded = with_entry(of_log(one.host.recorded, "systemd: hello"), STAT, "btime 1795132800")
    again = restarted(service, one, "one", after_seconds=-3 * 3600.0)
    assert "the clock was set back" in caplog.text
    assert [finding.code for finding in stale_findings(again.daemon.memory.histories)] == ["gpu-xid"]
    assert found(again.cycle(3)) == [("gpu-xid", GPU, "critical")]
    again.go(DAY)
    assert found(again.cycle(2)) == []


def test_an_acceptance_of_the_future_hides_no_later_line(service: Callable[..., Node], tmp_path: Path) -> None:
    """The service runs on while its clock is set back."""
    one = service(tmp_path)
    one.cycle()
    one.daemon.memory = replace(one.daemon.memory, accepted=one.host.now() + 2 * 3600.0)
    one.host.recorded = of_log(one.host.recorded, GSP)
    assert found(one.cycle()) == [("gpu-xid", GPU, "critical")]
