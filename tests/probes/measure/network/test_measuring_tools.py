"""Programs of others: what they print, how they fail, and that none outlives what started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.measure.external_tools import ToolFailed, absent, found, run, version
from linkgauge.probes.measure.network.client_server import both_ends, free_port, listens
from tests.support.mounts import needs_proc
from tests.support.programs import fake_tools

PYTHON = sys.executable
SERVER = "import socket; socket.create_server(('127.0.0.1', {port})).accept()"
CLIENT = "import socket; socket.create_connection(('127.0.0.1', {port})); print('done')"


def test_what_a_program_prints_and_what_is_done_meanwhile() -> None:
    looks: list[int] = []
    text = run([PYTHON, "-c", "import time; time.sleep(0.3); print('x' * 100_000)"], 60, watch=lambda: looks.append(1))
    assert text == "x" * 100_000 + "\n"
    assert looks


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ([PYTHON, "-c", "raise SystemExit('no such device')"], "no such device"),
        ([PYTHON, "-c", "print('only this'); raise SystemExit(3)"], "only this"),
        ([PYTHON, "-c", "raise SystemExit(3)"], "ended with 3"),
        ([PYTHON, "-c", "import os; os.abort()"], "ended with -6"),
        ([PYTHON, "-c", "import time; time.sleep(600)"], "no answer within 0.5 s"),
        (["/nowhere/tool"], "No such file or directory"),
    ],
)
def test_how_programs_fail(command: list[str], why: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        run(command, 0.5 if "600" in command[-1] else 60)
    assert str(failed.value) == f"{os.path.basename(command[0])}: {why}"


def test_their_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, prints in (("fio", "fio-3.33"), ("ib_write_bw", "Version: 6.06"), ("iperf3", ""), ("gdsio", None)):
        does = "exit 7" if prints is None else f"echo '{prints}'"
        fake_tools.put(tmp_path, monkeypatch, name, f"#!/bin/sh\n{does}\n")
    assert [version(found(name) or "") for name in ("fio", "ib_write_bw", "iperf3", "gdsio")] == [
        "fio-3.33",
        "ib_write_bw Version: 6.06",
        "iperf3",
        "gdsio",
    ]
    assert absent("fio", "fio", "nvme0n1") == NotChecked(
        what="fio", subject="nvme0n1", reason=Reason.NOT_INSTALLED, detail="fio is not installed", how="install fio"
    )


@needs_proc
def test_both_ends() -> None:
    port = free_port()
    server, client = ([PYTHON, "-c", text.format(port=port)] for text in (SERVER, CLIENT))
    assert not listens(port)
    assert both_ends(server, client, port, 60) == "done\n"
    assert not listens(port)


@pytest.mark.parametrize(
    ("server", "deadline", "why"),
    [
        ("raise SystemExit('no such device')", 60, "no such device"),
        ("pass", 60, "its server ended before the client connected"),
        ("import time; time.sleep(600)", 1, "its server does not listen after 1 s"),
    ],
)
def test_a_server_that_does_not_come_up(server: str, deadline: float, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        both_ends([PYTHON, "-c", server], [PYTHON, "-c", "pass"], free_port(), deadline)


@needs_proc
def test_nobody_measures_with_a_stranger() -> None:
    """Who has taken the port since it was free: another program, or somebody who waited for that."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(ToolFailed, match=f"another program uses port {port}"):
            both_ends([PYTHON, "-c", "pass"], [PYTHON, "-c", "print('a rate')"], port, 5)


STARTER = """
import sys
from linkgauge.probes.measure.external_tools import run
run([sys.executable, "-c", "import os, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
     .replace("sys.argv[1]", repr(sys.argv[1]))], 600)
"""


def test_no_program_outlives_what_started_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with subprocess.Popen([PYTHON, "-c", STARTER, str(file)]) as parent:
        while not (file.is_file() and file.read_text()):
            assert parent.poll() is None
            time.sleep(0.01)
        pid = int(file.read_text())
        os.kill(parent.pid, signal.SIGKILL)
    for _ in range(1000):
        if not _runs(pid):
            return
        time.sleep(0.01)
    pytest.fail("it still runs")


def _runs(pid: int) -> bool:
    """A process that has ended and that nobody has waited for is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
