"""The checkpoint of the service: complete or absent, of one service, and never a reason to end."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.service import checkpoint
from linkgauge.models.diagnosis.hysteresis import History, restarted, stale_findings
from linkgauge.models.report import Finding
from tests.support.mounts import needs_proc
from tests.support.programs.kept_memory import AT, MEMORY

RESTARTED = replace(MEMORY, histories=restarted(MEMORY.histories, rebooted=False))


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    folder = str(tmp_path / "var/lib/linkgauge")
    assert checkpoint.load(folder, Memory(), AT) == Memory()
    assert checkpoint.save(folder, Memory(), AT) is None
    assert checkpoint.save(folder, MEMORY, AT) is None
    assert checkpoint.load(folder, Memory(accepted=AT), AT + 1) == Memory(
        measured=MEMORY.measured, histories=RESTARTED.histories, past=MEMORY.past, accepted=AT
    )
    assert os.listdir(folder) == ["service.json"]


def test_findings_of_a_service_that_ended_are_stale_until_its_first_cycle(tmp_path: Path) -> None:
    """A state of another boot has no history that could keep it, and an event of another boot is history."""
    state = Finding(code="gpu-missing", subject="node", severity="critical", message="7 of 8")
    histories = {**MEMORY.histories, ("gpu-missing", "node", "state"): History((state,), (True, True), True, AT, AT)}
    before = replace(MEMORY, histories=histories, boot_id="one")
    assert checkpoint.save(str(tmp_path), before, AT) is None
    same = checkpoint.load(str(tmp_path), Memory(boot_id="one"), AT)
    why = "last seen 2027-01-15T08:00:00Z, before the service started"
    assert [(one.code, one.severity, one.stale) for one in stale_findings(same.histories)] == [
        ("gpu-missing", "critical", why),
        ("gpu-xid", "critical", why),
    ]
    assert same.histories["gpu-missing", "node", "state"].seen == (True, True)
    other = checkpoint.load(str(tmp_path), Memory(boot_id="two"), AT)
    assert [(one.code, one.severity, one.stale) for one in stale_findings(other.histories)] == [
        ("gpu-missing", "critical", "last seen 2027-01-15T08:00:00Z, before the machine booted"),
        ("gpu-xid", "info", None),
    ]
    assert other.histories["gpu-missing", "node", "state"].seen == ()
    assert (same.boot_id, other.boot_id) == ("one", "two")


def test_a_finding_of_another_version_is_forgotten(tmp_path: Path) -> None:
    (history,) = MEMORY.histories.values()
    removed = {("none-such", "gpu0", "event"): history, ("gpu-xid", "gpu1", "event"): replace(history, findings=())}
    assert checkpoint.save(str(tmp_path), replace(MEMORY, histories={**removed, **MEMORY.histories}), AT) is None
    assert checkpoint.load(str(tmp_path), Memory(), AT) == RESTARTED


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "damaged (Input data was truncated)"),
        ('{"version":2,"at":1}', "damaged ("),
        ('{"version":1}', "damaged ("),
        ('{"version":1,"at":1,"measured":["[rubbish"]}', "the checkpoint is ignored"),
        ("[" * 100_000, "damaged ("),
    ],
)
def test_what_is_damaged_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str, why: str) -> None:
    (tmp_path / "service.json").write_text(content)
    assert checkpoint.load(str(tmp_path), Memory(accepted=5), AT) == Memory(accepted=5)
    ((name, level, text),) = caplog.record_tuples
    assert (name, level) == ("linkgauge", logging.WARNING)
    assert text.startswith(f"{tmp_path}/service.json: ")
    assert why in text


def test_times_of_the_future_are_those_of_now(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A clock that was set back repairs nothing."""
    assert checkpoint.save(str(tmp_path), MEMORY, AT) is None
    early = AT - 4 * 3600
    loaded = checkpoint.load(str(tmp_path), Memory(), early)
    assert loaded.histories.keys() == MEMORY.histories.keys()
    assert {(one.first, one.last) for one in loaded.histories.values()} == {(early, early)}
    assert all(one.stale for one in stale_findings(loaded.histories))
    assert "its time is in the future: the clock was set back" in caplog.text


def test_what_is_no_file_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "service.json")  # a pipe without a writer: a blocking read would never return
    assert checkpoint.load(str(tmp_path), Memory(), AT) == Memory()
    assert checkpoint.load("/dev/null", Memory(), AT) == Memory()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.integers(0, 2000), st.binary(max_size=3))
def test_any_damage_is_a_beginning(tmp_path: Path, place: int, bytes: bytes) -> None:
    checkpoint.save(str(tmp_path), MEMORY, AT)
    file = tmp_path / "service.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:place] + bytes + whole[place + len(bytes) + 1 :])
    assert isinstance(checkpoint.load(str(tmp_path), Memory(), AT), Memory)


@needs_proc
def test_a_folder_that_may_not_be_written_to() -> None:
    """Root cannot create files in /proc either."""
    assert checkpoint.save("/proc/linkgauge", MEMORY, AT) == "/proc/linkgauge: No such file or directory"
    with checkpoint.exclusive("/proc/linkgauge"):
        assert checkpoint.load("/proc/linkgauge", MEMORY, AT) == MEMORY


def test_a_disk_that_fills_up_leaves_the_old_one(tmp_path: Path) -> None:
    """A file size limit has the same effect: half of the file is written."""
    assert checkpoint.save(str(tmp_path), MEMORY, AT) is None
    script = (
        "import resource, sys\nsys.dont_write_bytecode = True\n"
        "from tests.support.programs.kept_memory import AT, MEMORY\n"
        "from linkgauge.agent.service import checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nprint(checkpoint.save(sys.argv[1], MEMORY, AT + 1))"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], **child())
    assert done.stdout == f"{tmp_path}: File too large\n"
    assert os.listdir(tmp_path) == ["service.json"]
    assert checkpoint.load(str(tmp_path), Memory(), AT) == RESTARTED


KILLED = """
import os, signal, sys
from tests.support.programs.kept_memory import AT, MEMORY
from linkgauge.agent.service import checkpoint

os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)  # written, and not yet in its place
checkpoint.save(sys.argv[1], MEMORY, AT + 1)
"""


def test_killed_in_the_middle_of_writing(tmp_path: Path) -> None:
    assert checkpoint.save(str(tmp_path), MEMORY, AT) is None
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path], **child())
    assert done.returncode == -signal.SIGKILL
    half = [name for name in os.listdir(tmp_path) if name != "service.json"]
    assert len(half) == 1
    assert checkpoint.load(str(tmp_path), Memory(), AT) == RESTARTED
    (tmp_path / "accepted.json").touch()
    with checkpoint.exclusive(str(tmp_path)):  # which the next one takes away
        assert sorted(os.listdir(tmp_path)) == [".lock", "accepted.json", "service.json"]


def test_two_services_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    with (
        checkpoint.exclusive(folder),
        pytest.raises(BadInput, match="another 'linkgauge serve' uses this folder"),
        checkpoint.exclusive(folder),
    ):
        raise AssertionError("both began")
    with checkpoint.exclusive(folder):
        pass


def child() -> dict[str, Any]:
    return {
        "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        "capture_output": True,
        "text": True,
        "timeout": 100,
    }
