"""`linkgauge status` of a service that a signal killed or stopped: what it said last is not true for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mounts import needs_proc
from tests.support.nodes.described import node
from tests.support.nodes.trees import write
from tests.support.programs.command_line import COMMAND
from tests.support.programs.service import LONGEST, options, service

pytestmark = [pytest.mark.e2e, pytest.mark.slow, needs_proc]

FAST = 'cycle = "1s"\n'


def status(folder: Path) -> tuple[int, str]:
    """The exit code and the output."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "COLUMNS": "200"}
    command = [*COMMAND, "status", "--state-dir", str(folder / "state")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=LONGEST)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_service_that_was_killed_and_one_that_is_stopped(tmp_path: Path) -> None:
    write(tmp_path / "root", node("server-raid").entries)
    given = ("--root", str(tmp_path / "root"), *options(tmp_path, FAST))
    with service(*given) as one:
        one.until("STATUS=ok")
        assert status(tmp_path)[0] == 0
        one.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, one.process.pid, os.WSTOPPED | os.WNOWAIT)
        code, text = status(tmp_path)
        assert code == 3
        assert f"process {one.process.pid} of the service is stopped by a signal" in text
        one.process.send_signal(signal.SIGCONT)
        one.until("WATCHDOG=1")
        assert status(tmp_path)[0] == 0
        one.end(signal.SIGKILL)
        code, text = status(tmp_path)
        assert code == 3
        assert "no service runs: nothing holds the lock of this folder" in text
    with service(*given) as one:
        one.until("STATUS=ok")
        assert status(tmp_path)[0] == 0
        one.end()
    assert status(tmp_path)[0] == 3
