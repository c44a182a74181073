"""Attacks through the state folder: its owner cannot direct writes of root, and other users cannot read secrets."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service import checkpoint, job_window
from linkgauge.agent.slurm import health_check
from linkgauge.agent.state import acceptance, inventory_file, status_file
from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.models.inventory.inventory import Inventory, Item
from linkgauge.models.report import Finding, Report
from tests.support.nodes.broken_nodes import HGX
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node
from tests.support.programs.kept_memory import AT, MEMORY

NOBODY = 65534
PUBLIC = {"last.json", "accepted-public.json"}
SECRET = "S6CKNA0W123456"
ITEM = Item(
    kind="nvme", key="0000:81:00.0", identity=SECRET, serial=SECRET, slot=f"slot {SECRET}", label=f"label {SECRET}"
)
INVENTORY = Inventory(taken_at=AT, boot_id=SECRET, devices=(ITEM,), absent=(ITEM,))
COUNT = Observation(about="gpu0", quantity="x", unit="count", value=3, at=AT, evidence=Evidence(SECRET, SECRET))
FINDING = Finding(
    code="nvlink-errors",
    severity="warning",
    subject="gpu0",
    message="900 recoveries",
    observed=SECRET,
    expected_source=SECRET,
    cause=SECRET,
    remedy=SECRET,
    location={"slot": SECRET},
    subject_name=SECRET,
    evidence=(Evidence(SECRET, SECRET),),
)
REPORT = Report(
    node=SECRET,
    taken_at=None,
    source="live",
    context="host",
    profile=None,
    verdict="degraded",
    findings=(FINDING, replace(FINDING, message=SECRET, silenced=SECRET)),
)


def write_all(folder: str) -> None:
    """Write all files of the state folder except windows."""
    acceptance.write(folder, acceptance.Acceptance(at=AT, baseline=(COUNT,), inventory=INVENTORY))
    inventory_file.write(folder, INVENTORY, INVENTORY)
    status_file.write(folder, REPORT, AT, 15.0, {})
    health_check.keep(folder, health_check.CheckRecord(looked=AT))
    assert checkpoint.save(folder, MEMORY, AT) is None


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of root to which the service's user may not write."""
    path = tmp_path / "victim"
    path.mkdir()
    (path / "4711.json").write_text("of root")
    return path


FILES = ["accepted.json", "accepted-public.json", "inventory.json", "last.json", "gate.json", "service.json"]


def test_readers_of_the_folder_cannot_lock_out_the_service(tmp_path: Path) -> None:
    """Before, the service locked the folder itself, which all users can open: it ended with 64 and did not restart."""
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with checkpoint.exclusive(str(tmp_path)):
        assert (tmp_path / ".lock").stat().st_mode & 0o777 == 0o600
        with pytest.raises(BadInput), checkpoint.exclusive(str(tmp_path)):
            pass
    os.close(folder)


@pytest.mark.parametrize("name", FILES)
def test_no_write_follows_a_link(tmp_path: Path, victim: Path, name: str) -> None:
    """`accept` of root wrote through the link."""
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / name).symlink_to(victim / "4711.json")
    write_all(str(folder))
    assert (victim / "4711.json").read_text() == "of root"
    assert not (folder / name).is_symlink()
    assert sorted(os.listdir(folder)) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_no_read_follows_a_link(tmp_path: Path, name: str) -> None:
    """Else a warning of root quotes the file."""
    folder = tmp_path / "state"
    write_all(str(folder))
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert (name == "accepted.json") == (acceptance.read(str(folder)) is None)
    assert (name == "gate.json") == (health_check.record_of(str(folder)) == health_check.CheckRecord())
    assert (name == "service.json") == (checkpoint.load(str(folder), MEMORY.__class__(), AT) == MEMORY.__class__())


def test_windows_follow_no_link(tmp_path: Path, victim: Path) -> None:
    """The prolog and the epilog run as root. They wrote and deleted files in the folder of the link."""
    host, folder = node("desktop"), tmp_path / "state"
    folder.mkdir()
    (folder / "windows").symlink_to(victim)
    with pytest.raises(BadInput, match="Not a directory|symbolic links"):
        job_window.open_window(host, str(folder), "4711")
    assert (victim / "4711.json").read_text() == "of root"
    (folder / "windows").unlink()
    job_window.open_window(host, str(folder), "4711")
    opened = (folder / "windows/4711.json").read_bytes()
    (folder / "windows").rename(folder / "moved")
    (folder / "windows").symlink_to(victim)
    (victim / "4711.json").write_bytes(opened)
    job_window.close_window(host, str(folder), "4711")
    assert (victim / "4711.json").read_bytes() == opened


def modes(folder: Path) -> dict[str, int]:
    return {str(one.relative_to(folder)): stat.S_IMODE(one.lstat().st_mode) for one in folder.rglob("*.json")}


def test_other_users_can_read_only_what_every_client_of_the_web_server_sees(
    service: Callable[..., Node], tmp_path: Path
) -> None:
    one = service(tmp_path)
    one.cycle(2)
    write_all(str(tmp_path))
    job_window.open_window(node("desktop"), str(tmp_path), "4711")
    found = modes(tmp_path)
    assert {name for name, mode in found.items() if mode == 0o644} == PUBLIC
    assert {mode for name, mode in found.items() if name not in PUBLIC} == {0o640}
    for name in PUBLIC:
        assert SECRET not in (tmp_path / name).read_text()
    assert status_file.read(str(tmp_path), now=AT, booted=0).findings[0].message == "900 recoveries"


@pytest.mark.parametrize("name", ["a row could not be replaced", "uncorrected errors"])
def test_the_status_file_has_no_evidence(service: Callable[..., Node], tmp_path: Path, name: str) -> None:
    """`/report` needs a client of this machine or a password; the file had the same for every user."""
    one = service(tmp_path)
    one.host.recorded = node("hgx-h100", HGX[name][0])
    report = one.cycle(3)
    quoted = {line.text for finding in report.findings for line in finding.evidence if len(line.text) > 8}
    stored = msgspec.json.decode((tmp_path / "last.json").read_bytes())["findings"]
    assert stored
    assert [one.get("evidence", []) for one in stored] == [[]] * len(stored)
    assert not any(text in str(stored) for text in quoted)


def test_files_of_an_earlier_version_are_closed(tmp_path: Path) -> None:
    for name in ("accepted.json", "inventory.json", "last.json"):
        (tmp_path / name).write_text("{}")
        (tmp_path / name).chmod(0o644)
    with checkpoint.exclusive(str(tmp_path)):
        assert modes(tmp_path) == {"accepted.json": 0o640, "inventory.json": 0o640, "last.json": 0o644}
        assert (tmp_path / "accepted.json").read_text() == "{}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
def test_the_service_reads_what_root_writes(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    write_all(str(tmp_path))
    job_window.open_window(node("desktop"), str(tmp_path), "4711")
    assert {(one.stat().st_uid, one.stat().st_gid) for one in tmp_path.rglob("*")} == {(NOBODY, NOBODY)}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
def test_a_user_of_a_job_reads_the_acceptance_without_identities(tmp_path: Path) -> None:
    """Else `diagnose` in a job reports what an operator has accepted."""
    path = Path("/tmp", f"linkgauge-test-{os.getpid()}")
    write_all(str(path))
    groups = os.getgroups()
    try:
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        found, status = acceptance.read(str(path)), status_file.read(str(path), now=AT, booted=0)
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        for one in path.iterdir():
            one.unlink()
        path.rmdir()
    assert found is not None
    assert found.at == AT
    assert [(one.about, one.value) for one in found.baseline] == [("gpu0", 3)]
    assert found.inventory is not None
    assert [item.key for item in found.inventory.devices] == ["0000:81:00.0"]
    assert SECRET not in str(found)
    assert status.verdict == "degraded"
