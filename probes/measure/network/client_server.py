"""Both ends of a measuring tool on this machine: one waits as the server, the other one connects and measures."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from ....models.facts.reason import Reason
from ..external_tools import ToolFailed, finished, run, started

_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_LISTENS = "0A"  # TCP_LISTEN, include/net/tcp_states.h
_STARTING = 5.0  # seconds within which a server listens; GPU memory takes a second
_GLANCE = 0.01


def free_port() -> int:
    """A TCP port of this machine that nobody uses just now."""
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
    """What the client prints, which is started when the server listens on that port. Raises ToolFailed."""
    name = os.path.basename(server[0])
    if listens(port):  # the client would measure with whoever that is
        raise ToolFailed(f"{name}: somebody else took port {port}")
    with started(server, env) as waiting:
        try:
            until = time.monotonic() + min(_STARTING, deadline)
            while not listens(port):
                if waiting.poll() is not None:
                    finished(waiting, name, deadline)
                    raise ToolFailed(f"{name}: its server ended before anybody came")
                if time.monotonic() > until:
                    raise ToolFailed(
                        f"{name}: its server does not listen after {min(_STARTING, deadline):g} s", Reason.NO_ANSWER
                    )
                time.sleep(_GLANCE)
            return run(client, deadline, env, watch)
        finally:
            waiting.kill()


def listens(port: int) -> bool:
    """Whether somebody waits on that port. To connect would use up a server that takes one client."""
    for table in _TABLES:
        try:
            with open(table) as file:
                rows = [line.split() for line in file]
        except OSError:
            continue
        if any(len(row) > 3 and row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port for row in rows[1:]):
            return True
    return False
