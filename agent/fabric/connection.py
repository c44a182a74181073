"""The connection of a node to the coordinator."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

import msgspec

from .messages import TO_NODE, FromNode, ToNode
from .seal import HEADER, NONCE, Untrusted, seals

# tcp(7): seconds without a byte, seconds between probes, probes. A coordinator whose machine is gone ends the node.
_KEEPALIVE = {socket.TCP_KEEPIDLE: 20, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 4}
_AGAIN = 0.2  # seconds between two tries to connect: the coordinator may start later


class Lost(Exception):
    """The coordinator cannot be reached or ended. The message is the reason."""


class Coordinator:
    """The coordinator as a node sees it."""

    def __init__(self, stream: socket.socket, token: bytes) -> None:
        self.stream = stream
        nonce = os.urandom(NONCE)
        try:
            stream.sendall(nonce)
            self._incoming, self._outgoing = seals(token, self._exactly(NONCE), nonce)
        except OSError as error:
            raise Lost(f"the coordinator left: {error}") from None

    def send(self, message: FromNode) -> None:
        """Send a message. Raises Lost."""
        try:
            self.stream.sendall(self._outgoing.sealed(msgspec.json.encode(message)))
        except OSError as error:
            raise Lost(f"the coordinator left: {error}") from None

    def receive(self, seconds: float) -> ToNode:
        """The next message. Raises Lost."""
        self.stream.settimeout(seconds)
        try:
            length, code = self._incoming.length(self._exactly(HEADER.size))
            payload = self._exactly(length)
            self._incoming.check(code, payload)
            return TO_NODE.decode(payload)
        except TimeoutError:
            raise Lost(f"the coordinator gave no answer within {seconds:g} s") from None
        except (OSError, Untrusted, msgspec.DecodeError) as error:
            raise Lost(f"the coordinator left: {error}") from None

    def _exactly(self, count: int) -> bytes:
        parts = b""
        while len(parts) < count:
            part = self.stream.recv(min(1 << 16, count - len(parts)))
            if not part:
                raise Lost("the coordinator closed the connection: it refused the token or this node, or it ended")
            parts += part
        return parts


def connected(host: str, port: int, token: bytes, seconds: float) -> Coordinator:
    """Connect within so many seconds. Raises Lost."""
    until = time.monotonic() + seconds
    why = ""
    while (left := until - time.monotonic()) > 0:
        try:
            stream = socket.create_connection((host, port), min(left, 2.0))
        except OSError as error:
            why = str(error.strerror or error)
            time.sleep(min(left, _AGAIN))
            continue
        stream.settimeout(left)  # rank 0 of a busy machine may accept late
        with suppress(OSError):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE.items():
                stream.setsockopt(socket.IPPROTO_TCP, option, value)
        return Coordinator(stream, token)
    raise Lost(f"no connection to the coordinator {host} port {port} within {seconds:g} s: {why}")
