"""Clients that send slowly, stall, never read or send rubbish delay nobody: a normal scrape gets its answer."""

from __future__ import annotations

import logging
import os
import random
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from linkgauge.agent.web.server import serving
from tests.support.paths import ROOT
from tests.support.programs.certificates import authority, certificate, needs_openssl
from tests.support.programs.web_clients import LONGEST, get, pages_of, server_of, talk

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_MEMORY = 100 << 20  # bytes that the server may have at most
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


class Process:
    """A server in a process of its own, as far as clients see it."""

    def __init__(self, port: int) -> None:
        self.address = ("127.0.0.1", port)


@contextmanager
def process(*arguments: str) -> Iterator[Process]:
    """The server; when the block ends, what memory it had at most is checked."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "tests.support.programs.web_process", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as one:
        assert one.stdin
        assert one.stdout
        try:
            yield Process(int(one.stdout.readline()))
            one.stdin.close()
            most = int(one.stdout.readline())
        finally:
            one.kill()
    assert most < _MEMORY


def connect(stack: ExitStack, server: Process, receive: int | None = None) -> socket.socket:
    one = stack.enter_context(socket.socket())
    one.settimeout(LONGEST)
    if receive:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    one.connect(server.address)
    return one


def test_two_hundred_that_drip() -> None:
    with process() as server, ExitStack() as stack:
        for number in range(200):
            connect(stack, server).sendall(b"GET /metrics HTTP/1.1\r\nX-Drip: "[: 1 + number % 32])
        assert get(server).status == 200
        assert get(server, "/healthz").body == b"ok\n"


@pytest.mark.slow
def test_two_hundred_that_never_read() -> None:
    """Each client sends two hundred requests for 10 MB with the smallest receive window."""
    with process() as server, ExitStack() as stack:
        for _ in range(200):
            connect(stack, server, receive=1).sendall(200 * SCRAPE)
        assert [get(server).status for _ in range(20)] == [200] * 20


def test_more_than_may_be_open() -> None:
    """The server closes the oldest connections and accepts each new one."""
    with process() as server, ExitStack() as stack:
        first = connect(stack, server)
        for _ in range(400):
            connect(stack, server).sendall(b"GET ")
        assert get(server).status == 200
        assert first.recv(1) == b""


@needs_openssl
def test_three_stalled_handshakes(tmp_path: Path) -> None:
    authority(tmp_path)
    certificate(tmp_path, "server", "IP:127.0.0.1")
    config = tmp_path / "web.yml"
    config.write_text("tls_server_config: {cert_file: server.crt, key_file: server.key}\n")
    tls = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        tls.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1").do_handshake()
    begun = hello.read()
    with process(str(config)) as server, ExitStack() as stack:
        for sent in (b"", begun[:100], begun):
            connect(stack, server).sendall(sent)
        assert [get(server, tls=tls).status for _ in range(5)] == [200] * 5


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", b"GET /metrics HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
)
def test_a_client_that_does_not_end_its_request_is_dropped(sent: bytes) -> None:
    with serving("127.0.0.1:0", pages_of("desktop"), seconds=0.2) as server:
        with socket.create_connection(server.address, LONGEST) as one:
            one.sendall(sent)
            assert b"HTTP/1.1 200" not in one.recv(1 << 16)
        assert get(server, "/healthz").status == 200


def ask_for_ever(one: socket.socket) -> None:
    """The server takes requests until it must wait for the client, and then closes the connection."""
    while True:
        one.sendall(SCRAPE)


def test_a_client_that_does_not_read_the_answer_is_dropped() -> None:
    with serving("127.0.0.1:0", pages_of(), seconds=0.2) as server, socket.socket() as one:
        one.settimeout(LONGEST)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        one.connect(server.address)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            ask_for_ever(one)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10_000 + b"\r\n\r\n", None),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" + b"a" * 5000, 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: nonsense\r\n\r\n", 400),
        (b"GET  /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET http://elsewhere/metrics HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (b"GET /metrics?" + b"a" * 4000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ],
)
def test_malformed(sent: bytes, status: int | None) -> None:
    with server_of() as server:
        answer = talk(server, sent, end=False)
    assert answer[:12] == (b"" if status is None else f"HTTP/1.1 {status}".encode())


def broken(chance: random.Random) -> bytes:
    """A request with some of its bytes lost, doubled or changed, or none at all."""
    lines = [
        chance.choice([b"GET", b"HEAD", b"POST", b"get", b"\xff", b"PRI"])
        + b" "
        + chance.choice([b"/", b"/metrics", b"/report", b"*", b"//", b"/%00", b"/\xc3\x28"])
        + b" "
        + chance.choice([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"", b"RTSP/1.0"]),
        *chance.choices(
            [
                b"Host: x",
                b"Content-Length: 4",
                b"Content-Length: x",
                b"Transfer-Encoding: chunked",
                b"Accept: \xff",
                b"Authorization: Basic AAAA",
                b"Expect: 100-continue",
                b"Connection: close",
                b"X",
                b": y",
                b" folded",
                b"Accept-Encoding: gzip;q=\x00",
                b"Upgrade: h2c",
            ],
            k=chance.randrange(5),
        ),
    ]
    raw = bytearray(
        chance.choice([b"\r\n", b"\n", b"\r"]).join(lines) + b"\r\n\r\n" + chance.randbytes(chance.randrange(9))
    )
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(raw))
        raw[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return bytes(raw)


@pytest.mark.slow
def test_ten_thousand_malformed_requests(caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(9841)
    with server_of(pages_of("desktop")) as server, caplog.at_level(logging.DEBUG):
        firsts = [talk(server, broken(chance))[:9] for _ in range(10_000)]
        good = get(server)
    assert set(firsts) == {b"", b"HTTP/1.1 "}
    assert good.status == 200
    assert [record for record in caplog.records if record.exc_info] == []
