"""Commands end although the machine hangs, and start only programs of the machine's administrator."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.support.mounts import needs_proc, needs_terminals
from tests.support.paths import ROOT
from tests.support.programs.hanging_mount import hanging_mount
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

COMMAND = (sys.executable, "-m", "linkgauge")
PATHS = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextmanager
def started(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """The command with these arguments. A command that hangs in the kernel ends later, with the file system."""
    one = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env={**PATHS, **(env or {})})
    assert one.stdout
    with one.stdout:
        try:
            yield one
        finally:
            one.kill()
            with suppress(subprocess.TimeoutExpired):
                one.wait(5)


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    """The root of a machine. A list of its network interfaces never ends."""
    interfaces = tmp_path / "root/sys/class/net"
    interfaces.mkdir(parents=True)
    with hanging_mount(interfaces):
        yield tmp_path / "root"


def hangs(process: psutil.Process) -> bool:
    """Whether a thread waits for the file system, as the kernel names the function in which it waits."""
    try:
        waits = [Path(f"/proc/{process.pid}/task/{thread.id}/wchan").read_text() for thread in process.threads()]
    except OSError:
        return False  # a thread has ended
    return "request_wait_answer" in waits


@pytest.mark.slow
def test_diagnose_of_a_hung_folder_prints_its_report_and_ends(hung: Path) -> None:
    """A thread of it waits in the kernel and ends with the file system."""
    with started("diagnose", "--root", str(hung)) as command:
        report, _ = command.communicate(timeout=30)
    assert command.returncode == 3
    assert "sys/class/net: no answer within 10 s" in report


def test_sigterm_ends_a_command_that_hangs_within_two_seconds(hung: Path) -> None:
    with started("diagnose", "--root", str(hung)) as command:
        process = psutil.Process(command.pid)
        until(lambda: any(map(hangs, process.children())))
        sent = time.monotonic()
        command.terminate()
        assert command.wait(20) == -signal.SIGTERM
        assert time.monotonic() - sent < 2


@needs_proc
def test_the_child_of_a_killed_command_ends() -> None:
    with started("diagnose", "--root", "/") as command:
        until(lambda: bool(psutil.Process(command.pid).children()))
        (child,) = psutil.Process(command.pid).children()
        command.kill()
        command.wait()
        until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@contextmanager
def heeded(sent: signal.Signals) -> Iterator[None]:
    """Commands that start heed the signal, also under nohup(1), which ignores SIGHUP."""
    before = signal.getsignal(sent)
    if before == signal.SIG_IGN:
        signal.signal(sent, signal.SIG_DFL)
    yield
    if before == signal.SIG_IGN:
        signal.signal(sent, before)


@needs_proc
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_its_child(tmp_path: Path, sent: signal.Signals) -> None:
    """The input is a pipe without an end. The exit is that of a command without a child."""
    os.mkfifo(tmp_path / "pipe")
    with heeded(sent), started("diagnose", "--from", "-") as command:
        until(lambda: bool(psutil.Process(command.pid).children()))
        (child,) = psutil.Process(command.pid).children()
        command.send_signal(sent)
        assert command.wait(20) in (-sent, 130)
        until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@needs_proc
@needs_terminals
@pytest.mark.parametrize("times", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_ends_a_command_whose_child_hangs(times: int) -> None:
    """The terminal sends the signal to both processes. A stopped child ends as little as one that hangs in a driver."""
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [*COMMAND, "diagnose", "--from", "-"], PATHS)
    command = psutil.Process(pid)
    until(lambda: bool(command.children()))
    (child,) = command.children()
    child.suspend()
    try:
        for _ in range(times):
            os.write(terminal, b"\x03")
            time.sleep(0.1)
        assert command.wait(20) == -signal.SIGINT
        until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    finally:
        with suppress(psutil.Error):
            child.kill()
        os.close(terminal)


@pytest.mark.parametrize(
    ("code", "status", "printed"), [("wrong", 1, "wrong\n"), ([], 1, "[]\n"), (None, 0, ""), (300, 44, "")]
)
def test_the_exit_code_of_python(code: object, status: int, printed: str) -> None:
    script = (
        "import sys\nfrom linkgauge.agent.cli import entry\n"
        f"entry._main = lambda: sys.exit({code!r})\nsys.argv[1:] = ['diagnose']\nentry.run()"
    )
    done = subprocess.run([sys.executable, "-c", script], env=PATHS, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (status, printed)


@needs_proc
def test_nohup_is_respected(tmp_path: Path) -> None:
    command = ("nohup", *COMMAND, "diagnose", "--from", "-")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=PATHS) as one:
        until(lambda: bool(psutil.Process(one.pid).children()))
        one.send_signal(signal.SIGHUP)
        one.communicate("no capture")
    assert one.returncode == 3  # the text is in no known form


@pytest.mark.parametrize(("arguments", "code"), [(("--from", "{}"), 64), (("--wrong",), 64), (("--help",), 0)])
def test_the_exit_code_is_that_of_the_child(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    with started("diagnose", *(one.format(tmp_path) for one in arguments)) as command:
        command.communicate(timeout=60)
    assert command.returncode == code


def tool(folder: Path, name: str, script: str) -> None:
    """A program that a user put into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@needs_root
def test_root_runs_no_program_from_the_path_of_its_caller(tmp_path: Path) -> None:
    for name in ("nvidia-smi", "lstopo", "lstopo-no-graphics", "ibstat", "journalctl", "fio"):
        tool(tmp_path / "bin", name, f"touch {tmp_path}/ran-{name}")
    with started("topology", "--with-tools", env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}) as command:
        command.communicate(timeout=60)
    assert sorted(path.name for path in tmp_path.glob("ran-*")) == []


def test_children_have_known_variables_and_those_of_the_site_file(tmp_path: Path) -> None:
    for name in ("nvidia-smi", "lstopo-no-graphics", "ibstat"):
        tool(tmp_path / "bin", name, f"/usr/bin/env >{tmp_path}/variables-{name}")
    site = tmp_path / "site.toml"
    site.write_text(f'[environment]\nPATH = "{tmp_path}/bin"\nLD_LIBRARY_PATH = "/opt/site/lib"\n')
    hostile = {
        "LD_LIBRARY_PATH": "/home/eve/lib",
        "LD_AUDIT": "/home/eve/audit.so",
        "PYTHONSTARTUP": "/home/eve/x.py",
        "NCCL_NET_PLUGIN": "/home/eve/plugin.so",
        "HOME": "/home/eve",
        "AWS_SECRET_ACCESS_KEY": "eve",
    }
    with started("topology", "--with-tools", "--site", str(site), env=hostile) as command:
        command.communicate(timeout=60)
    written = {path.name: path.read_text() for path in tmp_path.glob("variables-*")}
    assert len(written) == 3
    for text in written.values():
        variables = dict(line.partition("=")[::2] for line in text.splitlines())
        assert variables["LD_LIBRARY_PATH"] == "/opt/site/lib"
        assert variables["PATH"].startswith(f"{tmp_path}/bin:")
        assert not hostile.keys() & variables.keys() - {"LD_LIBRARY_PATH"}
        assert "eve" not in text


def test_the_variables_of_a_site_file_have_names(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('[environment]\n"LD PRELOAD" = "x"\n')
    done = subprocess.run(
        [*COMMAND, "topology", "--site", site], env=PATHS, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 64
    assert "environment" in done.stderr
