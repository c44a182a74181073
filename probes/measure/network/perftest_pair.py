"""ib_write_bw between two nodes: one runs the server, the other the client, which prints the rate."""

from __future__ import annotations

import time

from ....models.facts.reason import Reason
from ....models.facts.records import Observation
from ...dumps.benchmarks import perftest
from ...dumps.core.part import Part
from ..external_tools import ToolFailed, found, run
from .client_server import free_port, listens
from .perftest import SIZE

__all__ = ["client", "free_port", "serve", "wait_for"]
_TOOL = "ib_write_bw"
_STARTING = 2.0  # seconds until a server must listen
_POLL_INTERVAL = 0.01
_SHARE = 4  # of the bytes of a flow at its nominal rate: a slow port must end in time, and RDMA has no slow start


def command(port: str, at: int, most: int) -> list[str]:
    """The command of the server: device and port, TCP port, messages for a part of the bytes. Raises ToolFailed."""
    program = found(_TOOL)
    if program is None:
        raise ToolFailed(f"{_TOOL} is not installed", Reason.NOT_INSTALLED)
    device, _, number = port.partition("/")
    messages = max(1, most // _SHARE // SIZE)
    # -F: do not fail if the CPU frequency varies
    options = ["-d", device, "-i", number or "1", "-p", str(at), "-s", str(SIZE), "-n", str(messages)]
    return [program, "-F", "--report_gbits", *options]


def serve(port: str, at: int, most: int, deadline: float) -> None:
    """Serve one client. Raises ToolFailed."""
    run(command(port, at, most), deadline)


def client(port: str, address: str, at: int, most: int, deadline: float) -> float:
    """The bytes per second of RDMA writes to the server. Raises ToolFailed."""
    text = run([*command(port, at, most), address], deadline)
    rates = [one.value for one in perftest.read(Part(_TOOL, 1, text, time.time())) if isinstance(one, Observation)]
    if not rates:
        raise ToolFailed(f"{_TOOL}: its output contains no result", Reason.UNREADABLE)
    return float(max(rates))


def wait_for(at: int) -> None:
    """Wait until the server listens. Raises ToolFailed."""
    until = time.monotonic() + _STARTING
    while not listens(at):
        if time.monotonic() > until:
            raise ToolFailed(f"{_TOOL}: its server does not listen after {_STARTING:g} s", Reason.NO_ANSWER)
        time.sleep(_POLL_INTERVAL)
