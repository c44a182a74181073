"""TCP from one node to another for a limited time and number of bytes, without other programs.

The sender proves with a key that the connection belongs to this flow. The receiver computes the rate from the bytes
that its kernel received (struct tcp_info, include/uapi/linux/tcp.h), so that a process that waits for a processor
changes nothing. It closes the connections at the end, and the sender sends until then.
"""

from __future__ import annotations

import hmac
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

from ....models.facts.units import MIB

STREAMS = 4  # one stream is limited by its window on long or fast paths
KEY = 32  # bytes
_BUFFER = 4 * MIB  # of a socket: the kernel goes on while other programs have the processor
_WARM_UP = 0.25  # share of the time that does not count: windows grow
_SAMPLES = 0.005  # seconds between two samples of the count
_SPAN, _FEWEST = 0.5, 4  # share of the time after the warm-up that samples cover, and their number
_RECEIVED = struct.Struct("Q"), 128  # tcpi_bytes_received and its offset
_LONGER = 1.0  # seconds after which a sender ends if the receiver does not
_HANDSHAKE = 2.0  # seconds for a key
_DISCARD = struct.pack("ii", 1, 0)  # struct linger: on, 0 s. The close discards unsent bytes and resets (socket(7))


class Failed(Exception):
    """The flow did not run. The message is the reason."""


def listen(address: str) -> socket.socket:
    """Listen on an unused port of a local address. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    _enlarge(server, socket.SO_RCVBUF, "rmem_max")  # accepted connections inherit it
    server.bind((address, 0))
    server.listen(2 * STREAMS)
    return server


def receive(server: socket.socket, key: bytes, seconds: float, deadline: float) -> float:
    """The bytes per second of all streams of a flow over so many seconds. Raises Failed and OSError.

    `deadline`: seconds for the sender to connect. A process that waited for a processor takes a little longer, until it
    has enough samples.
    """
    streams = _accepted(server, key, time.monotonic() + deadline)
    buffer = bytearray(MIB)
    samples = [(time.monotonic(), _arrived(streams))]
    with selectors.DefaultSelector() as ready:
        for one in streams:
            one.setblocking(False)
            ready.register(one, selectors.EVENT_READ)
        while ready.get_map() and not _complete(samples, seconds, time.monotonic()):
            for entry, _ in ready.select(_SAMPLES):
                if not _received(entry.fileobj, buffer):  # type: ignore[arg-type]
                    ready.unregister(entry.fileobj)
            if time.monotonic() - samples[-1][0] >= _SAMPLES:
                samples.append((time.monotonic(), _arrived(streams)))
    samples.append((time.monotonic(), _arrived(streams)))
    for one in streams:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        one.close()
    return rate_of(samples)


def _complete(samples: Sequence[tuple[float, int]], seconds: float, now: float) -> bool:
    """Whether the time is over, and the samples cover enough of it."""
    taken = now - samples[0][0]
    if not seconds <= taken < seconds + _LONGER:
        return taken >= seconds
    used = [at for at, _ in samples if at - samples[0][0] >= _WARM_UP * taken]
    return len(used) >= _FEWEST and used[-1] - used[0] >= _SPAN * (1 - _WARM_UP) * seconds


def _arrived(streams: Sequence[socket.socket]) -> int:
    """The bytes that the kernel received."""
    number, offset = _RECEIVED
    texts = (one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, offset + number.size) for one in streams)
    return sum(int(number.unpack_from(text, offset)[0]) for text in texts)


def rate_of(samples: Sequence[tuple[float, int]]) -> float:
    """The rate of samples (seconds, bytes so far) from the end of the warm-up to the last increase. Raises Failed."""
    ended, total = next(one for one in samples if one[1] == samples[-1][1])
    began = samples[0][0]
    first, before = next(one for one in samples if one[0] >= began + _WARM_UP * (ended - began))
    if ended <= first or total <= before:
        raise Failed("too few bytes arrived to compute a rate")
    return (total - before) / (ended - first)


def send(address: str, port: int, source: str, key: bytes, seconds: float, most: float) -> float:
    """Send until the receiver closes, and at most so many bytes. Returns the bytes. Raises OSError.

    If the receiver does not close, the flow ends soon after `seconds`.
    """
    streams = [_connected(address, port, source, key) for _ in range(STREAMS)]
    block, sent = memoryview(bytes(MIB)), 0
    until = time.monotonic() + seconds + _LONGER
    with selectors.DefaultSelector() as ready, suppress(ConnectionError):
        for one in streams:
            one.setblocking(False)
            ready.register(one, selectors.EVENT_WRITE)
        while sent < int(most) and (left := until - time.monotonic()) > 0:
            for entry, _ in ready.select(left):
                sent += entry.fileobj.send(block[: min(MIB, max(0, int(most) - sent))])  # type: ignore[union-attr]
        _drain(streams, until)
    for one in streams:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        one.close()
    return float(sent)


def _drain(streams: Sequence[socket.socket], until: float) -> None:
    """Let the sent bytes arrive until this time, or until the receiver closes."""
    with selectors.DefaultSelector() as ready:
        for one in streams:
            one.shutdown(socket.SHUT_WR)
            ready.register(one, selectors.EVENT_READ)
        while ready.get_map() and (left := until - time.monotonic()) > 0:
            for entry, _ in ready.select(left):  # the receiver closed it
                ready.unregister(entry.fileobj)


def _received(stream: socket.socket, buffer: bytearray) -> int:
    """The number of bytes that arrived; 0 at the end, also if the sender discarded the rest."""
    try:
        return stream.recv_into(buffer)
    except ConnectionResetError:
        return 0


def _connected(address: str, port: int, source: str, key: bytes) -> socket.socket:
    stream = socket.create_connection((address, port), _HANDSHAKE, (source, 0))
    _enlarge(stream, socket.SO_SNDBUF, "wmem_max")
    stream.sendall(key)
    return stream


def _enlarge(stream: socket.socket, buffer: int, limit: str) -> None:
    """Set the size of a buffer, unless the limit of the system is lower: then the kernel's own choice is better."""
    with suppress(OSError, ValueError), open(f"/proc/sys/net/core/{limit}") as file:
        if int(file.read()) < _BUFFER:
            return
    stream.setsockopt(socket.SOL_SOCKET, buffer, _BUFFER)


def _accepted(server: socket.socket, key: bytes, until: float) -> list[socket.socket]:
    """The streams of the flow. Connections without the key are closed. Raises Failed."""
    streams: list[socket.socket] = []
    while len(streams) < STREAMS:
        server.settimeout(max(0.001, until - time.monotonic()))
        try:
            stream, _ = server.accept()
        except TimeoutError:
            raise Failed("the sender did not connect") from None
        if hmac.compare_digest(_first_bytes(stream, min(until, time.monotonic() + _HANDSHAKE)), key):
            streams.append(stream)
        else:
            stream.close()
    return streams


def _first_bytes(stream: socket.socket, until: float) -> bytes:
    """The bytes in place of the key; fewer if they do not come in time."""
    found = b""
    while len(found) < KEY and (left := until - time.monotonic()) > 0:
        stream.settimeout(left)
        try:
            part = stream.recv(KEY - len(found))
        except OSError:
            break
        if not part:
            break
        found += part
    return found
