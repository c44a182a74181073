"""The web server: one thread, which slow, stalled or flooding clients cannot block.

Every connection has one deadline for its handshake and headers and one for reading the response. connections.py limits
their number.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import responses
from ipaddress import ip_address
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.iostream import IOStream, StreamClosedError

from ..inputs.site_file import BadInput
from .auth import Admission, Passwords
from .config import WebConfig, read_config
from .connections import BACKLOG, Door, add_limited, most_connections
from .pages import Pages
from .responses import Request, Response, reply, sentence

_SECONDS = 10.0  # for the handshake and headers of a request; again for reading the response
_HEADERS = 8 << 10  # bytes
_BODY = 1 << 10  # bytes; no request needs a body
_DELAY = 1.0  # seconds until the answer to a client with too many passwords
_DELAYED = 64  # requests that wait for such an answer; the others get it at once
_QUIET = 60.0  # seconds between two equal log messages

_log = logging.getLogger("linkgauge")
_REFUSALS: Mapping[Admission, Response] = {
    "wrong": sentence(401, "user name and password required", {"WWW-Authenticate": 'Basic realm="linkgauge"'}),
    "busy": sentence(503, "too many requests of this address wait for a password check"),
    "refused": sentence(429, "too many wrong passwords from this address", {"Retry-After": "60"}),
}


class _Http(HTTPServer):
    """tornado's server with a limit on connections and a deadline for clients that do not read."""

    def initialize(self, *args: Any, seconds: float = _SECONDS, **options: Any) -> None:
        options.update(idle_connection_timeout=seconds, body_timeout=seconds)
        super().initialize(*args, **options)
        self._seconds = seconds
        _, self._most = most_connections()
        self._open: dict[IOStream, float] = {}  # connection -> time of its arrival, the oldest first
        self._unread: dict[IOStream, float] = {}  # connection -> time since which its client does not read

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> Any:
        add_limited(self._open, stream, self._most, IOStream.close)
        return super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        self._open.pop(server_conn.stream, None)
        super().on_close(server_conn)

    def sweep(self) -> None:
        """Close connections whose client does not read the response in time."""
        now = time.monotonic()
        self._unread = {one: self._unread.get(one, now) for one in self._open if one.writing()}
        for stream, since in self._unread.items():
            if now - since > self._seconds:
                stream.close()


class Server:
    """A web server in a thread of its own."""

    def __init__(self, listening: socket.socket, pages: Pages, config: WebConfig, seconds: float) -> None:
        """Start the thread; `close` ends it. `seconds`: the deadline for a request and again for its response."""
        self.address: tuple[str, int] = listening.getsockname()[:2]
        self._listening, self._pages, self._config = listening, pages, config
        self._passwords = Passwords(config.users)
        self._delayed = 0  # refused requests that wait for their answer
        self._answers: set[asyncio.Task[None]] = set()  # the event loop holds only weak references to tasks
        self._http = _Http(
            self._on_request,
            ssl_options=config.tls,
            seconds=seconds,
            max_header_size=_HEADERS,
            max_body_size=_BODY,
            max_buffer_size=1 << 16,
            chunk_size=1 << 12,
        )
        self._door: Door | None = None
        self._failed = -_QUIET  # when a failure of the event loop was logged last, in monotonic seconds
        self._seconds = seconds
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._log_failure)
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="linkgauge-web", daemon=True)
        self._thread.start()

    def configure(self, config: WebConfig) -> None:
        """Use this configuration for new connections."""
        self._loop.call_soon_threadsafe(self._take, config)

    def close(self) -> None:
        """Stop listening and close all connections."""
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(_SECONDS)

    def _take(self, config: WebConfig) -> None:
        self._config = config
        self._passwords.use(config.users)
        self._http.ssl_options = config.tls
        if self._door:
            self._door.tls = config.tls is not None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            _log.exception("the web server failed (bug in linkgauge)")
        finally:
            self._passwords.close()
            self._loop.close()

    async def _serve(self) -> None:
        waiting, _ = most_connections()
        admit, tls = self._http._handle_connection, self._config.tls is not None
        self._door = Door(self._listening, admit, waiting, self._seconds, _HEADERS, tls)
        while not self._end.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._end.wait(), self._seconds / 10)
            self._door.sweep()
            self._http.sweep()
        self._door.close()
        await self._http.close_all_connections()

    def _log_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what no caller sees, once a minute: clients cause it, as often as they want."""
        if time.monotonic() - self._failed >= _QUIET:
            self._failed = time.monotonic()
            _log.warning("the web server dropped a connection: %s", context.get("exception") or context["message"])

    def _on_request(self, request: HTTPServerRequest) -> None:
        task = asyncio.ensure_future(self._answer(request))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, request: HTTPServerRequest) -> None:
        try:
            response = await self._reply(request)
        except Exception as fault:
            self._log_failure(self._loop, {"exception": fault, "message": ""})
            response = sentence(500, "a bug in linkgauge: see its log")
        with suppress(StreamClosedError):
            self._write(request, response)

    async def _reply(self, request: HTTPServerRequest) -> Response:
        config = self._config
        if config.sans and not config.sans & _names(request):
            return sentence(403, "no name of the client certificate is in client_allowed_sans")
        admission = await self._passwords.admit(request.headers.get("Authorization", ""), request.remote_ip or "")
        if admission != "right":
            await self._delay(admission)
            return _REFUSALS[admission]
        known = bool(config.users) or config.certificates
        parsed = Request(
            method=request.method or "",
            path=request.path,
            accept=request.headers.get("Accept", ""),
            encodings=request.headers.get("Accept-Encoding", ""),
            trusted=known or _is_here(request.remote_ip),
        )
        return reply(self._pages, parsed)

    async def _delay(self, admission: Admission) -> None:
        """Let a client wait that sends password after password: its next request comes later."""
        if admission != "wrong" and self._delayed < _DELAYED:
            self._delayed += 1
            try:
                await asyncio.sleep(_DELAY)
            finally:
                self._delayed -= 1

    def _write(self, request: HTTPServerRequest, response: Response) -> None:
        headers = HTTPHeaders({**response.headers, **self._config.headers, "Content-Length": str(len(response.body))})
        line = ResponseStartLine("", response.status, responses.get(response.status, "Unknown"))
        assert request.connection
        body = None if request.method == "HEAD" else response.body
        request.connection.write_headers(line, headers, body)
        request.connection.finish()


@contextmanager
def serving(
    listen: str | socket.socket,
    pages: Pages,
    config: str | None = None,
    seconds: float = _SECONDS,
    given_by: str = "--listen",
) -> Iterator[Server]:
    """Run a server at "HOST:PORT", or on a listening socket, during the block. Raises BadInput.

    `config`: path of a web configuration file.

    `seconds`: the deadline of a client for its request, and again for reading the response. `given_by`: the option, or
    the file and key, that gives `listen`.
    """
    listening = _bound(listen, given_by) if isinstance(listen, str) else listen
    server = Server(listening, pages, read_config(config), seconds)
    # Do not log each invalid request from outside.
    logging.getLogger("tornado").setLevel(logging.CRITICAL)
    try:
        yield server
    finally:
        server.close()


def _bound(listen: str, given_by: str) -> socket.socket:
    """Open a listening socket at "HOST:PORT", "[::1]:PORT", or ":PORT" for all addresses. Raises BadInput."""
    host, colon, number = listen.rpartition(":")
    if not (colon and number.isascii() and number.isdecimal() and int(number) < 1 << 16):
        raise BadInput(f"{given_by} {listen}: give HOST:PORT, such as 127.0.0.1:9841, or :9841 for all addresses")
    try:
        return _socket(host.strip("[]"), int(number))
    except socket.gaierror:
        raise BadInput(f"{given_by} {listen}: {host} is not an address of this machine") from None
    except UnicodeError:
        raise BadInput(f"{given_by} {listen}: {host} is not a valid host name") from None
    except OSError as refused:
        raise BadInput(f"{given_by} {listen}: {_why(refused, number)}") from None


def _socket(host: str, port: int) -> socket.socket:
    """Open a listening socket; an empty host means all addresses. Raises OSError."""
    if not host and socket.has_dualstack_ipv6():
        listening = socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    else:
        family, *_, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    listening.setblocking(False)
    return listening


def _why(refused: OSError, port: str) -> str:
    if refused.errno == errno.EADDRINUSE:
        return f"port {port} is in use: stop the program that uses it ('ss -ltnp' names it), or choose another port"
    if refused.errno == errno.EADDRNOTAVAIL:
        return "not an address of this machine; 'ip addr' lists its addresses"
    if refused.errno == errno.EACCES:
        return "ports below 1024 need root: choose a higher one"
    return refused.strerror or str(refused)


def _is_here(address: str | None) -> bool:
    try:
        client = ip_address((address or "").partition("%")[0])
    except ValueError:
        return False
    # A socket for IPv4 and IPv6 shows "::ffff:127.0.0.1".
    return (getattr(client, "ipv4_mapped", None) or client).is_loopback


def _names(request: HTTPServerRequest) -> set[str]:
    """The subject alternative names of the client certificate: DNS names, addresses, e-mail addresses, URIs."""
    certificate = request.get_ssl_certificate()
    if not isinstance(certificate, dict):
        return set()
    return {str(value) for _, value in certificate.get("subjectAltName", ())}
