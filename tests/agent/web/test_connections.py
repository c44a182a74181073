"""Floods of connections: the limit holds, a shortage of descriptors is logged once, and it is no fault of the node."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from linkgauge.agent.web import connections
from linkgauge.agent.web.connections import add_limited
from linkgauge.agent.web.server import serving
from linkgauge.models.facts.reason import Reason
from linkgauge.probes.calls.child import Children
from linkgauge.probes.calls.worker import Workers
from linkgauge.probes.host.live import Live
from tests.support.mounts import needs_proc
from tests.support.nodes.broken_nodes import BROKEN
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node
from tests.support.paths import ROOT
from tests.support.programs.web_clients import LONGEST, get, pages_of, server_of, talk
from tests.support.waiting import until

FEW = 300  # descriptors
UNFINISHED = b"GET /metrics HTTP/1.1\r\nX: "
SERVER = """
import resource, sys, time
from linkgauge.agent.service import logs
from linkgauge.agent.web.server import serving
from tests.support.programs.web_clients import pages_of
logs.configure("info", "text")
pages = pages_of("desktop")
pages.read("metrics")
with serving("127.0.0.1:0", pages) as server:
    print(server.address[1], flush=True)
    for line in sys.stdin:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(line), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        print("set", flush=True)
"""


class Running(NamedTuple):
    """A server in a process of its own."""

    address: tuple[str, int]
    process: subprocess.Popen[str]
    log: Path

    def limit(self, number: int) -> None:
        """Change how many descriptors it may have."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "set\n"

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextmanager
def running(folder: Path, nofile: int) -> Iterator[Running]:
    log = folder / "log"
    limited = ["prlimit", f"--nofile={nofile}:{nofile}", sys.executable, "-c", SERVER]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    pipe = subprocess.PIPE
    with (
        log.open("w") as errors,
        subprocess.Popen(limited, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment) as process,
    ):
        try:
            assert process.stdout
            yield Running(("127.0.0.1", int(process.stdout.readline())), process, log)
        finally:
            process.kill()


def connect(stack: ExitStack, server: Running) -> socket.socket:
    one = stack.enter_context(socket.socket())
    one.settimeout(LONGEST)
    one.connect(server.address)
    return one


@needs_proc
@pytest.mark.parametrize("sent", [b"", UNFINISHED])
def test_connections_never_use_up_the_descriptors(tmp_path: Path, sent: bytes) -> None:
    """Before, an entry stayed until the loop came to it, so a burst of connections went over the limit."""
    with running(tmp_path, FEW) as server, ExitStack() as stack:
        most = 0
        for number in range(2 * FEW):
            connect(stack, server).sendall(sent)
            most = max(most, server.descriptors if number % 10 == 0 else 0)
        assert get(server).status == 200
        assert max(most, server.descriptors) < FEW // 2
        assert server.log.read_text() == ""


@needs_proc
def test_a_shortage_is_logged_once_and_ends(tmp_path: Path) -> None:
    """Before, each accepted connection was a traceback: 156 MB in 45 s."""
    with running(tmp_path, FEW) as server, ExitStack() as stack:
        assert get(server).status == 200
        server.limit(server.descriptors)
        for _ in range(50):
            connect(stack, server).sendall(UNFINISHED)
        until(lambda: server.log.read_text() != "")
        server.limit(FEW)
        assert get(server).status == 200
        assert server.log.read_text().count("\n") == 1
        assert server.log.read_text().endswith("the web server cannot accept connections: Too many open files\n")


class Refusing(socket.socket):
    """A listening socket for which the kernel has no descriptor, three times."""

    refused = 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.refused < 3:
            self.refused += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


def test_three_shortages_are_one_line(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(connections, "_PAUSE", 0.01)
    with Refusing() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        with serving(listening, pages_of("desktop")) as server:
            assert get(server, "/healthz").status == 200
        assert listening.refused == 3
    assert [one.getMessage() for one in caplog.records] == [
        "the web server cannot accept connections: Too many open files"
    ]


def test_the_oldest_is_closed_and_removed() -> None:
    entries: dict[str, float] = {}
    closed: list[str] = []
    for name in "abcde":
        add_limited(entries, name, 3, closed.append)
    assert (list(entries), closed) == (["c", "d", "e"], ["a", "b"])


def test_a_request_in_pieces_gets_its_answer() -> None:
    with server_of(pages_of("desktop")) as server, socket.create_connection(server.address, LONGEST) as one:
        for part in (b"GET /healthz HTTP/1.1\r\n", b"Host: x\r\n", b"\r", b"\n"):
            one.sendall(part)
            time.sleep(0.05)
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_two_requests_on_one_connection() -> None:
    with server_of(pages_of("desktop")) as server, socket.create_connection(server.address, LONGEST) as one:
        for _ in range(2):
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert one.recv(1 << 16).endswith(b"ok\n")


def test_a_client_that_ends_too_early() -> None:
    with server_of(pages_of("desktop")) as server:
        assert talk(server, UNFINISHED) == b""
        assert talk(server, b"") == b""
        assert get(server, "/healthz").status == 200


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Let this process open no further file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("root", ["/", "/proc"])
def test_a_shortage_is_not_a_property_of_a_path(root: str) -> None:
    """Before, it was Unreadable, and sources reported the file."""
    host = Live(root)
    with no_descriptors():
        for read in (host.read, host.list):
            with pytest.raises(OSError, match="Too many open files") as caught:
                read("self/status" if root == "/proc" else "proc/self/status")
            assert caught.value.errno == errno.EMFILE


@pytest.mark.parametrize("children", [Children, Workers])
def test_a_shortage_is_not_the_answer_of_a_call(children: Callable[[], Children]) -> None:
    some = children()
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        list(some.call("statvfs", ("/",), LONGEST))


def short(path: str) -> str:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_shortage_changes_no_verdict(service: Callable[..., Node], tmp_path: Path) -> None:
    """Before, failed became unknown, and the finding could disappear."""
    one = service(tmp_path)
    broken = BROKEN["x8"]
    one.host.recorded = node(broken.base, broken.further)
    before = one.cycle(3)
    assert before.verdict == "failed"
    read, listed = one.host.read, one.host.list
    one.host.read, one.host.list = short, short  # type: ignore[method-assign, assignment]
    short_of = one.cycle(4)
    assert (short_of.verdict, short_of.findings) == ("failed", before.findings)
    assert short_of.not_checked == before.not_checked
    later = one.cycle(20)  # after five minutes the records are too old
    assert later.verdict == "unknown"
    assert [(finding.code, bool(finding.stale)) for finding in later.findings] == [("pcie-link-narrow", True)]
    assert {gap.reason for gap in later.not_checked} >= {Reason.EXHAUSTED}
    one.host.read, one.host.list = read, listed  # type: ignore[method-assign]
    assert one.cycle(2).findings == before.findings


def test_the_service_raises_its_limit() -> None:
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))\n"
        "from linkgauge.agent.service.main import ServeOptions, serve\n"
        "try:\n    serve(ServeOptions(config='/nowhere'))\n"
        "except Exception as wrong:\n    print(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout == "(512, 512)\n", done.stderr
