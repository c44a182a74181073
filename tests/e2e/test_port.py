"""Another user cannot answer on the port of a service that restarts: systemd holds the port (sd_listen_fds(3)).

Before, the service opened the port itself: any user could take it during a restart, show a healthy node to Prometheus,
and keep the service from starting.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.nodes.described import node
from tests.support.nodes.trees import write
from tests.support.programs.service import LONGEST, SERVE, options

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# What systemd does: https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html
SYSTEMD = (
    "import os, sys\n"
    "for number, passed in enumerate(sys.argv[1].split(','), 3):\n    os.dup2(int(passed), number)\n"
    "os.environ.update(LISTEN_FDS=str(number - 2), LISTEN_PID=str(os.getpid()))\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


@contextmanager
def started(*command: str, passed: tuple[socket.socket, ...]) -> Iterator[subprocess.Popen[str]]:
    """A service to which systemd passes the sockets."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    high = [os.dup2(one.fileno(), 100 + number) for number, one in enumerate(passed)]
    wrapped = (sys.executable, "-c", SYSTEMD, ",".join(map(str, high)), *SERVE, *command)
    process = subprocess.Popen(wrapped, stderr=subprocess.PIPE, text=True, env=variables, pass_fds=high)
    for one in high:
        os.close(one)
    with process:
        try:
            yield process
        finally:
            process.kill()


def is_taken(port: int) -> bool:
    """What another user gets who wants to listen there."""
    try:
        with socket.create_server(("127.0.0.1", port)):
            return False
    except OSError:
        return True


def test_the_port_stays_open_between_two_services(tmp_path: Path) -> None:
    write(tmp_path / "root", node("server-raid").entries)
    command = ("--root", str(tmp_path / "root"), *options(tmp_path, 'cycle = "1s"\n'))
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with started(*command, passed=(held,)) as first:
            assert first.stderr
            line = next(line for line in first.stderr if "serving" in line)
            assert line.endswith(f" serving http://127.0.0.1:{port}/metrics\n")
            first.send_signal(signal.SIGKILL)
            first.wait(LONGEST)
        assert is_taken(port)
        with socket.create_connection(("127.0.0.1", port), LONGEST) as scraper:
            scraper.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            with started(*command, passed=(held,)):  # it answers who came before it
                assert re.match(rb"HTTP/1\.1 (200|503) ", scraper.recv(1 << 16))
        assert is_taken(port)


def test_addresses_that_contradict(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        for config, passed, error in (
            (
                'listen = ":9841"',
                (one,),
                f"{tmp_path}/linkgauge.toml: listen = :9841: linkgauge.socket has the address: remove this one, and "
                "set ListenStream= with 'systemctl edit linkgauge.socket'",
            ),
            ("", (one, other), "linkgauge.socket: give one ListenStream= with an address and a port, or only a port"),
        ):
            with started("--root", str(tmp_path), *options(tmp_path, config), passed=passed) as process:
                _, text = process.communicate(timeout=LONGEST)
            assert (process.returncode, text.splitlines()[-1]) == (64, f"Error: {error}")
