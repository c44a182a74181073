"""Good and bad clients of the web server, and the server over a recorded node."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple, Protocol

from linkgauge.agent.web.pages import Pages
from linkgauge.agent.web.server import Server, serving
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.facts.units import from_utc
from linkgauge.models.report import Report
from tests.support.nodes.described import node, report_of

AT = "2026-11-21T03:00:00Z"
LONGEST = 30.0  # seconds that a good client waits


class Clock:
    """A clock that moves only on request."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@cache
def report(name: str) -> Report:
    """The report of a recorded node, always the same one."""
    return report_of(node(name))


def pages_of(name: str = "hgx-h100", clock: Clock | None = None) -> Pages:
    pages = Pages({"rack": "r7"}, monotonic=clock or Clock())
    pages.put(report(name), CycleInfo(ended=from_utc(AT), seconds=0.25))
    return pages


@contextmanager
def server_of(pages: Pages | None = None, config: str | None = None) -> Iterator[Server]:
    with serving("127.0.0.1:0", pages or pages_of(), config) as server:
        yield server


class Listening(Protocol):
    """A server, in this process or another."""

    @property
    def address(self) -> tuple[str, int]: ...


class Got(NamedTuple):
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def get(
    server: Listening,
    path: str = "/metrics",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Got:
    """The answer to a good client."""
    host, port = server.address
    if tls:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=LONGEST, context=tls)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=LONGEST)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def talk(server: Listening, sent: bytes, end: bool = True) -> bytes:
    """The beginning of the server's answer to these bytes.

    `end`: the client closes its sending side, which may be all that the server receives.
    """
    answer = b""
    with socket.create_connection(server.address, LONGEST) as one, suppress(ConnectionResetError, BrokenPipeError):
        one.sendall(sent)
        if end:
            one.shutdown(socket.SHUT_WR)
        while len(answer) < len("HTTP/1.1 200") and (part := one.recv(1 << 16)):
            answer += part
    return answer
