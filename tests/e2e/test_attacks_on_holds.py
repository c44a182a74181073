"""Attacks of a local user on holds, releases and locks. They change no verdict and delay no command of root.

Each attack was possible while `/run/linkgauge` was writable for all users (mode 1777).
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.agent.measuring.lock import locked
from linkgauge.models.facts.reason import Reason
from linkgauge.models.report import Report
from linkgauge.models.site.gate import Gate, causes
from linkgauge.probes.calls import hold
from linkgauge.probes.calls.child import unanswered
from linkgauge.probes.calls.driver_lock import is_open
from linkgauge.probes.calls.registry import CALLS
from tests.support.nodes.broken_nodes import BROKEN
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node

pytestmark = pytest.mark.e2e
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run a child as another user")

NOBODY = 65534
_GROUP = "daemon"  # in place of the group `linkgauge`, which a package creates; Debian and Red Hat have it
FILES = ("linkgauge.lock", "linkgauge.driver")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of requests, which every user can reach."""
    with TemporaryDirectory(dir="/tmp") as path:
        monkeypatch.setenv("LINKGAUGE_LOCK_DIR", path)
        os.chmod(path, 0o755)
        yield Path(path)


def packaged(folder: Path) -> None:
    """The mode that the packages give the folder."""
    os.chown(folder, 0, hold.group_id() or 0)
    folder.chmod(0o2775)


def by_nobody(script: str, *args: str, group: int = NOBODY) -> subprocess.Popen[str]:
    """Run the script as another user, who may not be able to start this interpreter."""
    pipe, become = (
        subprocess.PIPE,
        f"import fcntl, os, sys, time\nos.setgroups([])\nos.setgid({group})\nos.setuid({NOBODY})\n",
    )
    command = [sys.executable, "-I", "-c", become + script, *args]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, cwd="/")


FORGE = """
with open(sys.argv[1], "w") as file:
    file.write(f"{time.time() + 3600:.1f} root, process 1,\\n")
"""
LOCK = """
for path in sys.argv[1:]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        print("locked")
    except OSError as refused:
        print(refused.strerror)
sys.stdout.flush()
sys.stdin.read()
"""


def forged(folder: Path, group: int = NOBODY) -> str:
    """What another user gets who writes a release in the name of root."""
    done = by_nobody(FORGE, str(folder / "linkgauge.release"), group=group)
    return done.communicate(timeout=60)[0]


@contextmanager
def locking(folder: Path) -> Iterator[list[str]]:
    """Another user locks all files that it can open, and keeps them."""
    with by_nobody(LOCK, *(str(folder / name) for name in FILES)) as other:
        assert other.stdout
        yield [other.stdout.readline().strip() for _ in FILES]
        other.communicate(timeout=60)


@as_root
def test_a_request_of_another_user_does_not_count(folder: Path) -> None:
    folder.chmod(0o1777)
    assert forged(folder) == ""
    assert (folder / "linkgauge.release").stat().st_uid == NOBODY
    assert hold.active_request(hold.RELEASE) is None
    assert hold.held() is None


@as_root
def test_another_user_cannot_write_where_the_packages_put_requests(folder: Path) -> None:
    packaged(folder)
    assert "Permission denied" in forged(folder)
    with locked() as why:
        assert why is None
        hold.hold(60, 7)
        with locking(folder) as results:
            assert results == ["Permission denied"] * 2
    assert (hold.held() or "").startswith("held by root, process 7, for another ")


@as_root
@pytest.mark.parametrize("command", ["hold", "release"])
def test_locks_of_another_user_delay_no_command_of_root(folder: Path, command: str) -> None:
    """Even in a folder to which all users may write. Before, the command failed after 5 s."""
    folder.chmod(0o1777)
    with locking(folder) as results:
        assert results == ["locked"] * 2
        began = time.monotonic()
        done = CliRunner().invoke(main, [command, "--for", "30s"])
        assert done.exit_code == 0
        assert done.output.startswith("This machine is ")
        assert done.output.endswith(f" To end it: linkgauge {command} --end\n")
        assert time.monotonic() - began < 1
        assert not is_open()


@pytest.mark.parametrize("kind", ["link", "link to nothing", "folder", "socket"])
@pytest.mark.parametrize("command", ["hold", "release"])
def test_other_kinds_of_files_delay_no_command(folder: Path, tmp_path: Path, command: str, kind: str) -> None:
    """A member of the group can put them at all names. Before, the commands failed, some of them after 5 s."""
    victim = tmp_path / "victim"
    victim.write_text("of root")
    for name in (*FILES, f"linkgauge.{command}"):
        if kind == "folder":
            (folder / name).mkdir()
            (folder / name / "content").write_text("")
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(str(folder / name))
        else:
            (folder / name).symlink_to(victim if kind == "link" else tmp_path / "none")
    began = time.monotonic()
    done = CliRunner().invoke(main, [command, "--for", "30s"])
    assert done.exit_code == 0
    assert done.output.startswith("This machine is ")
    assert done.output.endswith(f" To end it: linkgauge {command} --end\n")
    assert time.monotonic() - began < 1
    assert hold.active_request(command)
    with locked() as why:
        assert why is None
    assert not is_open()
    assert victim.read_text() == "of root"
    assert not (tmp_path / "none").exists()


def test_a_lock_that_cannot_be_opened_delays_no_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that makes a folder of it again and again. Before, the command failed after 5 s."""
    path = folder / "linkgauge.lock"
    path.mkdir()
    rename = os.rename

    def again(old: str, new: str) -> None:
        rename(old, new)
        os.mkdir(old)

    monkeypatch.setattr(os, "rename", again)
    began = time.monotonic()
    done = CliRunner().invoke(main, ["hold", "--for", "30s"])
    assert time.monotonic() - began < 1
    assert done.exit_code == 1
    assert done.output == (
        f"{path}: another process replaces this file again and again: "
        "cannot see whether a process uses the machine; remove this file\n"
    )
    assert hold.held()


@as_root
def test_the_group_can_open_locks_that_are_older_than_the_group(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locked():
        assert not is_open()
    assert [(folder / name).stat().st_mode & 0o777 for name in FILES] == [0o600] * 2 or hold.group_id()
    monkeypatch.setattr(hold, "_NAME", _GROUP)
    packaged(folder)
    with locked():
        assert not is_open()
    for name in FILES:
        status = (folder / name).stat()
        assert (status.st_gid, status.st_mode & 0o777) == (hold.group_id(), 0o660)


@as_root
def test_the_real_owner_is_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of the group may hold. It cannot do so in the name of root."""
    monkeypatch.setattr(hold, "_NAME", _GROUP)
    packaged(folder)
    group = hold.group_id()
    assert group is not None
    assert forged(folder, group=group) == ""
    who = hold.active_request(hold.RELEASE)
    assert who is not None
    assert who.startswith(("released by nobody for another ", "released by a member of the group daemon for another "))


@as_root
@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_request_that_others_can_write_does_not_count(folder: Path, mode: int) -> None:
    hold.hold(60, 7)
    path = folder / "linkgauge.hold"
    os.chown(path, 0, NOBODY)
    path.chmod(mode)
    assert hold.held() is None


@as_root
def test_a_second_name_of_a_file_of_root_does_not_count(folder: Path) -> None:
    hold.hold(60, 7)
    os.link(folder / "linkgauge.hold", folder / "linkgauge.release")
    assert hold.active_request(hold.RELEASE) is None


@pytest.mark.parametrize("kind", ["link", "folder of another user", "folder for all users"])
def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """It is in /tmp, where any user can create the name first."""
    monkeypatch.delenv("LINKGAUGE_LOCK_DIR")
    monkeypatch.setattr(hold, "_FOLDER", str(tmp_path / "none/run"))
    monkeypatch.setattr(hold, "_SESSIONS", str(tmp_path / "none"))
    monkeypatch.setattr(hold, "_TEMPORARY", str(tmp_path))
    own, victim = tmp_path / f"linkgauge-{os.geteuid()}", tmp_path / "victim"
    victim.mkdir()
    assert hold.folder() == str(own)  # root, too, in a container whose root is read-only
    own.rmdir()
    if kind == "link":
        own.symlink_to(victim)
    else:
        own.mkdir()
        own.chmod(0o777)
    if kind == "folder of another user":
        if os.geteuid() != 0:
            pytest.skip("needs root, to give a folder away")
        own.chmod(0o700)
        os.chown(own, NOBODY, NOBODY)
    with locked() as why:
        assert why == f"the lock {own} cannot be taken: another user may write there"
    done = CliRunner().invoke(main, ["hold"])
    assert done.exit_code == 64
    assert done.output.startswith(f"Error: {own}: another user may write there")
    assert (hold.held(), os.listdir(victim)) == (None, [])


def test_only_the_owner_and_the_group_can_open_a_lock(folder: Path) -> None:
    with locked() as why:
        assert why is None
        assert not stat.S_IMODE((folder / "linkgauge.lock").stat().st_mode) & 0o007


def closing(report: Report) -> set[tuple[str, str]]:
    return {(one.code, one.subject) for one in causes(report.findings, Gate())}


def released(what: str) -> bool:
    return CALLS[what].opens_driver


@pytest.mark.parametrize("name", ["17 of 18 NVLinks", "no fabric manager", "x8"])
def test_a_released_driver_clears_no_finding(service: Callable[..., Node], tmp_path: Path, name: str) -> None:
    """Its values are not evaluated. Findings stay, and the gate stays closed."""
    broken = BROKEN[name]
    one = service(tmp_path)
    one.host.recorded = node(broken.base, broken.further)
    before = one.cycle(3)
    assert broken.finding in {(finding.code, finding.subject) for finding in before.findings}
    closed = closing(before)
    assert closed

    def call(what: str, *args: str, deadline: float) -> Iterator[object]:
        if released(what):
            return iter([unanswered(what, Reason.DRIVER, "the driver is released by root, process 7")])
        return one.host.recorded.call(what, *args, deadline=deadline)

    one.host.call = call  # type: ignore[assignment, method-assign]
    after = one.cycle(5)
    assert closing(after) == closed
    assert after.verdict in ("failed", "unknown")
    (finding,) = (one for one in after.findings if (one.code, one.subject) == broken.finding)
    assert finding.stale or name == "x8"  # the width of a PCIe link is read without the driver
