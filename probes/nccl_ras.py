"""Query NCCL's RAS subsystem in a process of a running job (`ncclras`; NCCL 2.24, JSON since 2.28.7).

Protocol: lines of text over TCP, NVIDIA/nccl src/ras/client.cc and client_support.cc. A server that does not know SET
FORMAT answers with an error, and then reports as text.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from time import monotonic, sleep, time
from typing import NoReturn

from msgspec.structs import replace

from ..models.facts.job_ranks import Rank
from ..models.facts.reason import Reason, reason_of
from ..models.facts.records import NotChecked, Record
from .calls.timeouts import no_answer
from .host.host import Host

PORT = 28028
_SECONDS = 4.0  # for one query; RAS itself waits 2 s for ranks that do not answer
_RAS_SECONDS = 2
_BETWEEN = 1.0  # seconds between two queries
_LONGEST = 64 << 20  # bytes of a report: 4096 ranks have 3 MB
_HOW = "start it where a process of the job runs, with NCCL 2.24 or later and without NCCL_RAS_ENABLE=0"


def address_of(text: str) -> tuple[str, int]:
    """Host and port of "HOST", "HOST:PORT" or "[::1]:PORT". Raises ValueError with a message for the user."""
    host, colon, port = text.rpartition(":") if not text.endswith("]") and ":" in text else (text, "", str(PORT))
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{text}: give HOST:PORT, such as localhost:{PORT}")
    return host.strip("[]"), int(port)


def read_ras(address: tuple[str, int], host: Host) -> Iterator[Record]:
    """The ranks that differ from the others. A rank is late only if it did not move between two queries."""
    live = host.origin == "live"
    where = f"NCCL RAS {address[0]}:{address[1]}"
    first = list(_queried(address, where))
    late = {one.key: one for one in first if isinstance(one, Rank) and one.state == "late"}
    if not late:
        yield from (_placed(one, live) for one in first)
        return
    sleep(_BETWEEN)
    for one in _queried(address, where):
        if isinstance(one, Rank) and one.state == "late":
            if one.key in late and late[one.key].launched == one.launched:
                yield _placed(replace(one, unchanged=_BETWEEN), live)
        else:
            yield _placed(one, live)


def _placed(one: Record, live: bool) -> Record:
    return replace(one, here=_is_local(one.host)) if live and isinstance(one, Rank) and one.host else one


def _is_local(address: str) -> bool:
    """Whether an interface of this machine has the address: the kernel binds sockets to no other."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except (OSError, ValueError):
        return False
    return True


def _queried(address: tuple[str, int], where: str) -> Iterator[Record]:
    """The records of one report. A report that ends too early gives what it has, and a NotChecked."""
    from .dumps.read import read_text  # imports about fifty readers

    received = bytearray()
    try:
        _query(address, received)
    except TimeoutError:
        yield _unread(where, Reason.NO_ANSWER, no_answer(_SECONDS))
    except OSError as error:
        yield _unread(where, reason_of(error.errno), error.strerror or str(error))
    else:
        if not received.strip():
            yield _unread(where, Reason.INCOMPLETE, "the connection ended before the report")
    if received.strip():
        yield from read_text(where, received.decode("utf-8", "replace"), time())


def _unread(where: str, reason: Reason, why: str) -> NotChecked:
    return NotChecked(what="Rank", subject="node", reason=reason, path=where, detail=why, how=_HOW)


def _query(address: tuple[str, int], received: bytearray) -> None:
    """Send the commands, and append the report to `received`. Raises OSError, TimeoutError."""
    until = monotonic() + _SECONDS
    with socket.create_connection(address, _SECONDS) as connection:
        lines = b""
        for command in ("CLIENT PROTOCOL 2", f"TIMEOUT {_RAS_SECONDS}", "SET FORMAT json"):
            connection.sendall(f"{command}\n".encode())
            while b"\n" not in lines:
                lines += _next(connection, until) or _broken()
            lines = lines.partition(b"\n")[2]
        connection.sendall(b"VERBOSE STATUS\n")
        received += lines
        while len(received) < _LONGEST and (further := _next(connection, until)):
            received += further


def _next(connection: socket.socket, until: float) -> bytes:
    """The next bytes; b"" if the server has closed the connection. Raises OSError, TimeoutError."""
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
    return connection.recv(1 << 16)


def _broken() -> NoReturn:
    raise ConnectionError(errno.ECONNRESET, "the connection ended before the report")
