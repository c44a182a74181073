"""`linkgauge serve` as a process: its files and signals, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.support.mounts import needs_proc
from tests.support.nodes.described import node
from tests.support.nodes.trees import write
from tests.support.programs.command_line import COMMAND
from tests.support.programs.hanging_mount import hanging_mount
from tests.support.programs.service import LONGEST, SERVE, Service, options, service
from tests.support.programs.web_clients import get
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FAST = 'cycle = "1s"\n'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine as a tree of files."""
    folder = tmp_path_factory.mktemp("root")
    write(folder, node("server-raid").entries)
    return folder


def verdict(one: Service) -> str:
    (word,) = re.findall(r'^linkgauge_verdict{verdict="(\w+)"} 1.0$', get(one).body.decode(), re.MULTILINE)
    return str(word)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """One that does not begin."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.run([*SERVE, *options], capture_output=True, text=True, env=env, timeout=LONGEST)


def children(one: Service) -> list[psutil.Process]:
    return psutil.Process(one.process.pid).children(recursive=True)


def test_from_its_start_to_its_end(root: Path, tmp_path: Path) -> None:
    with service("--root", str(root), *options(tmp_path, FAST)) as one:
        assert one.until("READY=1") == "READY=1\nWATCHDOG=1\nSTATUS=ok, 0 findings"
        assert verdict(one) == "ok"
        assert get(one, "/healthz").status == 200
        assert json.loads(get(one, "/report").body)["verdict"] == "ok"
        one.until("WATCHDOG=1")
        assert one.end() == 0
        assert one.until("STOPPING=1")
    assert one.lines[-1].endswith(" info    ended")
    assert sorted(os.listdir(tmp_path / "state")) == [
        *(".lock", "history.sqlite3", "inventory.json", "last.json", "service.json")
    ]


def test_what_it_imports(root: Path, tmp_path: Path) -> None:
    """What is heavy, and what opens a driver, is for others. After a cycle, a scrape, a reload and the end."""
    script = (
        "import atexit, sys\nfrom linkgauge.agent.cli.main import main\n"
        "atexit.register(lambda: print('imported', *sorted(sys.modules), file=sys.stderr))\n"
        "main(['serve', *sys.argv[1:]])"
    )
    program = (sys.executable, "-c", script)
    with service("--root", str(root), *options(tmp_path, FAST), program=program) as one:
        one.until("READY=1")
        assert verdict(one) == "ok"
        for path in ("/", "/report", "/healthz"):
            assert get(one, path).status == 200
        one.process.send_signal(signal.SIGHUP)
        one.until("RELOADING=1")
        one.until("READY=1")
        one.end()
    (line,) = (line for line in one.lines if line.startswith("imported "))
    heavy = {"pandas", "rich", "cuda", "numpy", "pynvml", "nccl", "opentelemetry", "yaml", "bcrypt"}
    assert {name.partition(".")[0] for name in line.split()} & heavy == set()


def test_a_new_configuration_and_a_bad_one(root: Path, tmp_path: Path) -> None:
    config, site = tmp_path / "linkgauge.toml", tmp_path / "site.toml"
    site.write_text('[environment]\nPATH = "/tmp:\\u0000"\n')
    with service("--root", str(root), *options(tmp_path, FAST)) as one:
        one.until("READY=1")
        for text, line in (
            (
                'cicle = "2s"',
                f"not reloaded, .* stays in force: --config {config}: .*did you mean cycle",
            ),
            (
                'cycle = "2s"\nsite = "/none"',
                f"not reloaded, .* stays in force: {config}: site = /none: No such file",
            ),
            (
                f'cycle = "2s"\nsite = "{site}"',
                f"not reloaded, .* stays in force: {config}: site = {site}: environment: PATH: .*zero byte",
            ),
            ('cycle = "2s"\nweb = "/none"', "not reloaded, .* stays in force: .*/none"),
            ('cycle = "2s"\n[push]\nnvsentinel = "unix:///none/x.sock"\n', "reloaded"),
            ('cycle = "2s"\nlog_format = "json"', '"message": "reloaded"'),
        ):
            config.write_text(text)
            one.process.send_signal(signal.SIGHUP)
            assert one.until("RELOADING=1").startswith("RELOADING=1\nMONOTONIC_USEC=")
            one.line(line)
            assert one.until("READY=1")
            one.until("STATUS=ok")  # it goes on
        assert one.end() == 0
    assert json.loads(one.lines[-1])["message"] == "ended"


def test_a_port_that_is_taken(root: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--root", str(root), "--listen", f"127.0.0.1:{port}", *options(tmp_path))
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == (
        f"Error: --listen 127.0.0.1:{port}: port {port} is in use: stop the program that uses it "
        "('ss -ltnp' names it), or choose another port\n"
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--root", "/none"), "--root /none: No such file or directory"),
        (("--config", "/none"), "--config /none: No such file or directory"),
        (("--listen", "here"), "--listen here: give HOST:PORT"),
    ],
)
def test_what_it_cannot_begin_with(given: tuple[str, ...], why: str) -> None:
    done = run(*given)
    assert done.returncode == 64
    assert done.stderr.startswith(f"Error: {why}")


def test_two_on_one_node(root: Path, tmp_path: Path) -> None:
    """On two ports with one folder. They would overwrite each other's state and call the driver twice as often."""
    given = ("--root", str(root), *options(tmp_path, FAST))
    with service(*given) as one:
        one.until("READY=1")
        done = run("--listen", "127.0.0.1:0", *given)
        assert done.returncode == 64
        assert done.stderr.startswith(f"Error: --state-dir {tmp_path}/state: another 'linkgauge serve' uses this")
        assert verdict(one) == "ok"
        one.end(signal.SIGKILL)
    with service(*given) as one:  # who was killed keeps nobody out
        one.until("READY=1")


def test_the_tree_goes_and_comes_back(tmp_path: Path) -> None:
    """As where a container's mount of the machine is lost: that is no healthy machine without devices."""
    root = tmp_path / "root"
    write(root, node("server-raid").entries)
    with service("--root", str(root), *options(tmp_path, FAST)) as one:
        one.until("STATUS=ok")
        root.rename(tmp_path / "away")
        one.until("STATUS=unknown")
        assert verdict(one) == "unknown"
        (tmp_path / "away").rename(root)
        one.until("STATUS=ok")
        assert verdict(one) == "ok"
        shutil.rmtree(root)
        one.until("STATUS=unknown")
        assert one.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_on_this_machine_and_leaves_no_child(tmp_path: Path, number: int) -> None:
    with service(*options(tmp_path, FAST)) as one:
        one.until("READY=1")
        started = children(one)
        assert started
        assert one.end(number) == 0
    _, alive = psutil.wait_procs(started, LONGEST)
    assert alive == []
    assert not [line for line in one.lines if "Traceback" in line]


def test_killed_it_leaves_no_child(tmp_path: Path) -> None:
    with service(*options(tmp_path, FAST)) as one:
        one.until("READY=1")
        started = children(one)
        assert started
        assert one.end(signal.SIGKILL) == -signal.SIGKILL
    _, alive = psutil.wait_procs(started, LONGEST)
    assert alive == []


def status_of(folder: Path) -> tuple[int, str]:
    """The exit code and the output."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "COLUMNS": "200"}
    command = [*COMMAND, "status", "--state-dir", str(folder / "state")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=LONGEST)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@needs_proc
def test_the_status_of_a_service_that_is_stopped_or_killed(tmp_path: Path) -> None:
    write(tmp_path / "root", node("server-raid").entries)
    given = ("--root", str(tmp_path / "root"), *options(tmp_path, FAST))
    with service(*given) as one:
        one.until("STATUS=ok")
        assert status_of(tmp_path)[0] == 0
        one.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, one.process.pid, os.WSTOPPED | os.WNOWAIT)
        code, text = status_of(tmp_path)
        assert code == 3
        assert f"process {one.process.pid} of the service is stopped by a signal" in text
        one.process.send_signal(signal.SIGCONT)
        one.until("WATCHDOG=1")
        assert status_of(tmp_path)[0] == 0
        one.end(signal.SIGKILL)
        code, text = status_of(tmp_path)
        assert code == 3
        assert "no service runs: nothing holds the lock of this folder" in text
    with service(*given) as one:
        one.until("STATUS=ok")
        assert status_of(tmp_path)[0] == 0
        one.end()
    assert status_of(tmp_path)[0] == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
def test_it_ends_while_a_source_hangs_in_the_kernel(tmp_path: Path) -> None:
    """It answers meanwhile. The report names what the dead mount hides; all other parts are complete."""
    place = tmp_path / "mount"
    place.mkdir()
    with hanging_mount(place), service(*options(tmp_path, FAST)) as one:
        one.until("READY=1")
        page = get(one).body.decode()
        assert "linkgauge_stuck_children 1.0" in page
        one.process.terminate()  # the log ends with the child that cannot end
        assert one.process.wait(LONGEST) == 0


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[Path, ExitStack]]:
    """A machine whose driver of disks answers nobody, until what is given with it is left."""
    root = tmp_path / "root"
    write(root, node("server-raid").entries)
    place = root / "sys/class/nvme"
    shutil.rmtree(place)
    place.mkdir()
    with ExitStack() as mounted:
        mounted.enter_context(hanging_mount(place))
        yield root, mounted


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
def test_files_that_hang_in_the_kernel_stop_nothing_else(hanging: tuple[Path, ExitStack], tmp_path: Path) -> None:
    root, mounted = hanging
    with service("--root", str(root), *options(tmp_path, FAST)) as one, mounted:
        one.until("READY=1")
        page = get(one).body.decode()
        assert "linkgauge_stuck_children 1.0" in page  # who comes after the first does not hang on it too
        assert 'linkgauge_not_checked{check="Nvme",reason="no-answer"} 1.0' in page
        assert 'linkgauge_link_trained_bytes_per_second{kind="pcie"' in page
        one.process.terminate()  # it cannot end before the kernel lets go of it
        mounted.close()
        assert one.process.wait(LONGEST) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
def test_a_look_at_files_that_hang_in_the_kernel(hanging: tuple[Path, ExitStack], tmp_path: Path) -> None:
    root, mounted = hanging
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [*SERVE[:-1], "diagnose", "--passive", "-v", "--root", str(root)]
    out = tmp_path / "out"  # no pipe: a child that hangs would hold it open
    with out.open("w") as stdout, subprocess.Popen(command, stdout=stdout, text=True, env=env) as process, mounted:
        until(lambda: "no answer within 10 s (sys/class/nvme" in out.read_text())
        mounted.close()
        assert process.wait(LONGEST) == 3
