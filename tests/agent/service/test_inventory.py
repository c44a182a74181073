"""The inventory of a service: hot removal, restart, boot and acceptance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.cli.ticket import ticket
from linkgauge.agent.measuring.session import NOTHING
from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.service import checkpoint
from linkgauge.agent.state import acceptance, inventory_file
from linkgauge.agent.state.acceptance import Acceptance
from linkgauge.models.inventory.inventory import Inventory, accepted_now
from linkgauge.models.report import Report
from linkgauge.probes.host.entries import Link
from linkgauge.probes.host.recorded import Recorded, dump
from linkgauge.probes.system.node import BOOT_ID
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, with_entry

NIC, DISK = "0000:11:00.0", "0000:1d:00.0"


def without(recorded: Recorded, address: str) -> Recorded:
    """The machine without this PCI device, and without its driver's devices."""
    entries = {
        path: entry
        for path, entry in recorded.entries.items()
        if address not in path and not (isinstance(entry, Link) and address in str(entry.target))
    }
    calls = {call: tuple(line for line in lines if address not in line) for call, lines in recorded.calls.items()}
    return Recorded(recorded.taken, entries, calls)


def of_boot(recorded: Recorded, boot_id: str) -> Recorded:
    return with_entry(recorded, BOOT_ID, boot_id)


def found(report: Report) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in report.findings if one.severity != "info"]


@pytest.fixture
def hgx(service: Callable[..., Node], tmp_path: Path) -> Node:
    made = service(tmp_path)
    made.host.recorded = of_boot(made.host.recorded, "one")
    return made


def again(service: Callable[..., Node], one: Node, recorded: Recorded) -> Node:
    """The service after a restart on this machine."""
    folder = one.daemon.folder
    after = service(Path(folder))
    after.host.recorded, after.host.wall = recorded, one.host.wall + 60
    boot_id = recorded.read(BOOT_ID)
    accepted = acceptance.read(folder) or Acceptance()
    inventory, last = inventory_file.load(folder, accepted, boot_id)
    memory = Memory(boot_id=boot_id, inventory=inventory, last=last, accepted=accepted.at)
    after.daemon.memory = checkpoint.load(folder, memory, after.host.now())
    return after


@pytest.mark.parametrize(("address", "code"), [(DISK, "storage-missing"), (NIC, "nic-missing")])
def test_a_hot_removal_is_found_and_stays_after_restart_and_boots(
    service: Callable[..., Node], hgx: Node, address: str, code: str
) -> None:
    assert hgx.cycle(2).verdict == "ok"
    hgx.host.recorded = without(hgx.host.recorded, address)
    hgx.go(3600)
    assert found(hgx.cycle(2)) == [(code, address)]
    one = hgx
    for boot_id in ("one", "two", "three"):
        one = again(service, one, of_boot(without(node("hgx-h100"), address), boot_id))
        assert found(one.cycle(3)) == [(code, address)]
        assert not any(finding.stale for finding in one.cycle().findings)
    back = again(service, one, of_boot(node("hgx-h100"), "four"))
    assert found(back.cycle(3)) == []


def test_a_device_that_is_absent_after_a_boot(service: Callable[..., Node], hgx: Node) -> None:
    hgx.cycle()
    after = again(service, hgx, of_boot(without(node("hgx-h100"), DISK), "two"))
    assert found(after.cycle(2)) == [("storage-missing", DISK)]


def test_the_first_start_records_without_findings(hgx: Node) -> None:
    hgx.host.recorded = without(hgx.host.recorded, NIC)
    assert hgx.cycle(3).verdict == "ok"
    stored, last = inventory_file.load(hgx.daemon.folder, Acceptance(), "one")
    assert stored
    assert last
    assert stored.find(NIC) is None
    assert len(stored.of("gpu")) == 8
    assert len(stored.of("nic")) == 9


def test_an_acceptance_ends_the_search_for_an_absent_device(service: Callable[..., Node], hgx: Node) -> None:
    hgx.cycle(2)
    hgx.host.recorded = without(hgx.host.recorded, NIC)
    hgx.go(3600)
    assert found(hgx.cycle(3)) == [("nic-missing", NIC)]
    last = hgx.daemon.memory.last
    assert last
    at = hgx.host.now() - 20  # the service completes a cycle while the operator's command reads the node
    now = accepted_now(replace(last, taken_at=at))
    acceptance.write(hgx.daemon.folder, Acceptance(at=at, inventory=now))
    assert found(hgx.cycle(3)) == []
    after = again(service, hgx, of_boot(without(node("hgx-h100"), NIC), "two"))
    assert found(after.cycle(3)) == []


def test_the_file_is_written_only_when_something_changed(hgx: Node) -> None:
    path = Path(hgx.daemon.folder, inventory_file.FILE)
    hgx.cycle(2)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    hgx.go(3600)
    hgx.cycle(5)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_a_damaged_file_is_a_warning(hgx: Node, capsys: pytest.CaptureFixture[str]) -> None:
    Path(hgx.daemon.folder, inventory_file.FILE).write_text("{")
    assert inventory_file.load(hgx.daemon.folder, Acceptance(), None) == (None, None)
    assert "the inventory of this node is not used" in capsys.readouterr().err


def test_an_acceptance_of_an_earlier_version_has_no_inventory(tmp_path: Path) -> None:
    (tmp_path / "accepted.json").write_text('{"version":1,"at":1800000000.0,"baseline":[]}')
    assert acceptance.read(str(tmp_path)) == Acceptance(at=1.8e9)


def test_the_newer_inventory_counts() -> None:
    old, new = Inventory(taken_at=1.0), Inventory(taken_at=2.0)
    assert inventory_file.newest(old, Acceptance(inventory=new)) is new
    assert inventory_file.newest(new, Acceptance(inventory=old)) is new
    assert inventory_file.newest(None, Acceptance(inventory=old)) is old
    assert inventory_file.newest(old, Acceptance()) is old


def test_a_ticket_for_a_disk_that_is_absent(hgx: Node, tmp_path: Path) -> None:
    hgx.cycle()
    stored, last = inventory_file.load(hgx.daemon.folder, Acceptance(), "one")
    assert stored
    assert last
    items = [replace(item, serial="S64ANS0T") if item.key == DISK else item for item in stored.devices]
    inventory_file.write(str(tmp_path), replace(stored, devices=tuple(items)), last)
    alias = stored.find(DISK).alias  # type: ignore[union-attr]
    capture = tmp_path / "node.capture"
    capture.write_text(dump(without(hgx.host.recorded, DISK)))
    for subject in (DISK, alias or ""):
        shown = ticket("/", [str(capture)], None, subject, NOTHING, True, str(tmp_path))
        assert f"PART  {DISK}, {alias}" in shown
        assert "  state                 absent; it was there at 2026-11-21T03:00:00Z" in shown
        assert f"WARNING  storage-missing  {DISK}" in shown
        assert "  serial number         S64ANS0T" in shown
        hidden = ticket("/", [str(capture)], None, subject, NOTHING, False, str(tmp_path))
        assert "S64ANS0T" not in hidden
