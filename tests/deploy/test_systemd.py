"""The unit of the service, checked by systemd's tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from linkgauge.agent.service.config import LISTEN
from linkgauge.agent.web.connections import BACKLOG

pytestmark = pytest.mark.e2e

FOLDER = Path(__file__).parents[2] / "deploy/systemd"
EXAMPLES = sorted((FOLDER / "examples").glob("*.conf"))
MOST = 1.5  # of systemd-analyze security: 10 is what a service of root without any line has

needs_analyze = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """A copy whose program is there, on whatever machine."""
    text = (FOLDER / "linkgauge.service").read_text()
    assert "ExecStart=/usr/bin/linkgauge serve\n" in text
    path = tmp_path / "linkgauge.service"
    path.write_text(text.replace("/usr/bin/linkgauge", sys.executable))
    return path


def verified(unit: Path) -> str:
    """The messages of systemd-analyze. The exit code is 0 also for an unknown key."""
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    return done.stdout + done.stderr


@needs_analyze
def test_systemd_has_no_complaint_about_the_unit(unit: Path) -> None:
    assert verified(unit) == ""
    unit.write_text(unit.read_text() + "[Service]\nPrivateThings=yes\n")
    assert "PrivateThings" in verified(unit)  # so it is looked at


@needs_analyze
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_systemd_has_no_complaint_about_the_examples(unit: Path, example: Path) -> None:
    folder = unit.with_name("linkgauge.service.d")
    folder.mkdir()
    shutil.copy(example, folder)
    assert verified(unit) == ""
    (folder / example.name).write_text(example.read_text() + "PrivateThings=yes\n")
    assert "PrivateThings" in verified(unit)


@needs_analyze
def test_systemd_has_no_complaint_about_the_socket(unit: Path) -> None:
    path = unit.with_suffix(".socket")
    shutil.copy(FOLDER / path.name, path)
    assert verified(path) == ""
    path.write_text(path.read_text() + "[Socket]\nPrivateThings=yes\n")
    assert "PrivateThings" in verified(path)


def test_systemd_keeps_the_port() -> None:
    """Before, another user could take it while the service restarted. systemd closes it at one of its limits.

    https://www.freedesktop.org/software/systemd/man/latest/systemd.socket.html, TriggerLimitIntervalSec=
    """
    settings = keys(FOLDER / "linkgauge.socket")
    assert (settings["ListenStream"], settings["Backlog"]) == (LISTEN, str(BACKLOG))
    assert (settings["TriggerLimitIntervalSec"], settings["FlushPending"], settings["WantedBy"]) == (
        "0",
        "yes",
        "sockets.target",
    )
    service = keys(FOLDER / "linkgauge.service")
    assert (service["StartLimitIntervalSec"], service["Also"]) == ("0", "linkgauge.socket")
    assert all("linkgauge.socket" in service[key].split() for key in ("Wants", "After"))


@needs_analyze
def test_how_much_it_could_do(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", unit], capture_output=True, text=True, timeout=100
    )
    found = re.search(r"Overall exposure level for linkgauge.service: ([0-9.]+)", done.stdout)
    assert found, done.stderr
    assert float(found[1]) <= MOST


def keys(path: Path) -> dict[str, str]:
    """The last value of each key."""
    return dict(re.findall(r"^([A-Z][A-Za-z]+)=(.*)$", path.read_text(), re.MULTILINE))


def test_no_capability_but_where_an_example_says_what_for() -> None:
    settings = keys(FOLDER / "linkgauge.service")
    assert (settings["CapabilityBoundingSet"], settings.get("AmbientCapabilities"), settings["User"]) == (
        "",
        None,
        "linkgauge",
    )
    given = {path.stem: keys(path)["AmbientCapabilities"] for path in EXAMPLES if "AmbientCap" in path.read_text()}
    assert given == {"kernel-log": "CAP_SYSLOG", "pci-config": "CAP_SYS_ADMIN"}
    for path in EXAMPLES:
        head = path.read_text().partition("[Service]")[0]
        assert f"/etc/systemd/system/linkgauge.service.d/{path.name}\n" in head
        assert "Lost\n# without" in head or "Lost without" in head


@pytest.mark.parametrize(
    ("tool", "file"), [("systemd-sysusers", "sysusers.conf"), ("systemd-tmpfiles", "tmpfiles.conf")]
)
def test_users_and_folders(tmp_path: Path, tool: str, file: str) -> None:
    if not shutil.which(tool):
        pytest.skip(f"needs {tool}")
    (tmp_path / "etc").mkdir()
    (tmp_path / "run/linkgauge").mkdir(parents=True, mode=0o755)  # as root creates them before there is the group
    locks = [tmp_path / "run/linkgauge" / name for name in ("linkgauge.lock", "linkgauge.driver")]
    for lock in locks:
        lock.touch(0o600)
    for users in ("sysusers.conf", file):  # folders belong to a user, who has to be there
        program = "systemd-sysusers" if users == "sysusers.conf" else tool
        action = ("--create",) if program == "systemd-tmpfiles" else ()
        done = subprocess.run(
            [program, f"--root={tmp_path}", *action, FOLDER / users], capture_output=True, text=True, timeout=100
        )
        if done.returncode and "not permitted" in done.stderr:
            pytest.skip("needs root, to give folders away")
        assert done.returncode == 0, done.stderr
    assert re.search("^linkgauge:.*:/var/lib/linkgauge:", (tmp_path / "etc/passwd").read_text(), re.MULTILINE)
    if tool == "systemd-tmpfiles":
        assert (tmp_path / "var/lib/linkgauge").is_dir()
        assert (tmp_path / "run/linkgauge").stat().st_mode & 0o7777 == 0o2775  # only root and the group
        found = re.search("^linkgauge:[^:]*:([0-9]+):", (tmp_path / "etc/group").read_text(), re.MULTILINE)
        assert found
        for path in (tmp_path / "run/linkgauge", *locks):
            assert path.stat().st_gid == int(found[1])
        assert {lock.stat().st_mode & 0o777 for lock in locks} == {0o660}
