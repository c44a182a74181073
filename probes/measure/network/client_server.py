"""Running the server and the client of a benchmark on this machine."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from ....models.facts.reason import Reason
from ..external_tools import ToolFailed, finished, run, started

_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_LISTENS = "0A"  # TCP_LISTEN, include/net/tcp_states.h
_STARTING = 5.0  # seconds until a server must listen; allocating GPU memory takes one second
_POLL_INTERVAL = 0.01


def free_port() -> int:
    """Return an unused TCP port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def both_ends(
    server: Sequence[str],
    client: Sequence[str],
    port: int,
    deadline: float,
    env: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
) -> str:
    """Start the server, then the client once the server listens on `port`; return the client's output.

    Raises ToolFailed.
    """
    name = os.path.basename(server[0])
    if listens(port):  # the client would connect to the other program
        raise ToolFailed(f"{name}: another program uses port {port}")
    with started(server, env) as server_process:
        try:
            until = time.monotonic() + min(_STARTING, deadline)
            while not listens(port):
                if server_process.poll() is not None:
                    finished(server_process, name, deadline)
                    raise ToolFailed(f"{name}: its server ended before the client connected")
                if time.monotonic() > until:
                    raise ToolFailed(
                        f"{name}: its server does not listen after {min(_STARTING, deadline):g} s", Reason.NO_ANSWER
                    )
                time.sleep(_POLL_INTERVAL)
            return run(client, deadline, env, watch)
        finally:
            server_process.kill()


def listens(port: int) -> bool:
    """Whether a program listens on the port. It does not connect, because some servers accept only one client."""
    for table in _TABLES:
        try:
            with open(table) as file:
                rows = [line.split() for line in file]
        except OSError:
            continue
        if any(len(row) > 3 and row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port for row in rows[1:]):
            return True
    return False
