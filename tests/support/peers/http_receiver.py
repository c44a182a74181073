"""An HTTP server that takes metrics, such as a Pushgateway or an OTLP collector, and a server of another protocol."""

from __future__ import annotations

import gzip
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    """A received request."""

    method: str
    path: str
    body: bytes


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, list[Request]]]:
    """The address of a server, and the requests that it received."""
    taken: list[Request] = []

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            zipped = self.headers.get("Content-Encoding") == "gzip"
            taken.append(Request(self.command, self.path, gzip.decompress(body) if zipped else body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PUT = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with HTTPServer(("127.0.0.1", 0), Take) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", taken
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def one_answer(answer: bytes) -> Iterator[str]:
    """The address of a server that sends these bytes to each client."""

    class Client(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Client) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
