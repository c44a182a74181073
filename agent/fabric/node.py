"""A node of the measurement: it joins the coordinator, and does what the coordinator says until the end."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...probes.calls.hold import held
from ...probes.host.live import Live
from ...probes.measure.external_tools import ToolFailed
from ...probes.measure.network import perftest_pair, tcp_stream
from ..measuring.idle import claimed_by
from ..measuring.lock import locked
from . import children
from .connection import Coordinator
from .messages import Done, End, Incoming, Join, Listening, Outgoing, Prepare, Prepared, Rail, Receive, Send, Stopped
from .preparation import NodeOptions, prepared

IDLE = 3600.0  # seconds that a node waits for its next task: the budget of a run is smaller
PREPARING = 60.0  # seconds for the diagnosis of a node
_STARTING = 3.0  # seconds of a flow besides its data; a busy machine needs more than one


class Node:
    """The state of a node during a run."""

    def __init__(self, coordinator: Coordinator, options: NodeOptions) -> None:
        self._coordinator, self._options = coordinator, options
        self._rails: Mapping[str, Rail] = {}
        self._busy: str | None = "it was not prepared"

    def serve(self) -> None:
        """Do the tasks of the coordinator until it ends the run. Raises Lost."""
        with locked() as taken:
            while not isinstance(task := self._coordinator.receive(IDLE), End):
                if isinstance(task, Prepare):
                    self._prepare(taken)
                elif why := self._busy or self._claim():
                    self._coordinator.send(Stopped(why))
                elif isinstance(task, Receive):
                    self._receive(task)
                else:
                    self._send(task)

    def _prepare(self, taken: str | None) -> None:
        stream = self._coordinator.stream
        local: str = stream.getsockname()[0]
        child = children.begin(prepared, self._options, local)
        found = children.results({"": child}, PREPARING, stream)[""]
        if isinstance(found, children.Failure):
            self._coordinator.send(Stopped(f"its diagnosis failed: {found.why}"))
            return
        assert isinstance(found, Prepared)
        self._rails = {one.name: one for one in found.rails}
        busy = None if self._options.force else found.busy
        lacks = None if self._rails else f"no address on {', '.join(self._options.rails)}"
        self._busy = taken or held() or busy or lacks
        self._coordinator.send(replace(found, busy=self._busy))

    def _claim(self) -> str | None:
        """The hold or the job that claims this machine now. --force overrides a job, never a hold."""
        return held() if self._options.force else claimed_by(Live(), self._options.owner)

    def _receive(self, task: Receive) -> None:
        running, ports, failures = dict[str, children.Child](), dict[str, int](), dict[str, str]()
        for flow in task.flows:
            try:
                ports[flow.rail], running[flow.rail] = self._listening(flow, task)
            except (OSError, KeyError, ToolFailed) as error:
                failures[flow.rail] = f"cannot listen: {error}"
        self._coordinator.send(Listening(ports))
        self._finish(running, task.seconds + 2 * _STARTING, failures)

    def _listening(self, flow: Incoming, task: Receive) -> tuple[int, children.Child]:
        """The port of a flow and its receiver. Raises OSError, KeyError and ToolFailed."""
        rail, deadline = self._rails[flow.rail], task.seconds + _STARTING
        if rail.tool == "perftest":
            port = perftest_pair.free_port()
            child = children.begin(perftest_pair.serve, rail.name, port, int(task.bytes), deadline)
            perftest_pair.wait_for(port)
            return port, child
        server = tcp_stream.listen(rail.address)
        try:
            return server.getsockname()[1], children.begin(
                tcp_stream.receive, server, flow.key, task.seconds, _STARTING
            )
        finally:
            server.close()

    def _send(self, task: Send) -> None:
        running = dict[str, children.Child]()
        failures = dict[str, str]()
        for flow in task.flows:
            if flow.rail in self._rails:
                running[flow.rail] = self._sending(flow, task)
            else:
                failures[flow.rail] = "the node has no such rail"
        self._finish(running, task.seconds + 2 * _STARTING, failures)

    def _sending(self, flow: Outgoing, task: Send) -> children.Child:
        rail = self._rails[flow.rail]
        if rail.tool == "perftest":
            deadline = task.seconds + _STARTING
            return children.begin(perftest_pair.client, rail.name, flow.address, flow.port, int(task.bytes), deadline)
        to = (flow.address, flow.port, rail.address, flow.key)
        return children.begin(_sent, *to, task.seconds, task.bytes)

    def _finish(self, running: Mapping[str, children.Child], deadline: float, failures: dict[str, str]) -> None:
        found: dict[str, Any] = children.results(running, deadline, self._coordinator.stream)
        rates = {rail: one for rail, one in found.items() if isinstance(one, float)}
        failures |= {rail: one.why for rail, one in found.items() if isinstance(one, children.Failure)}
        self._coordinator.send(Done(rates, failures))


def _sent(*args: Any) -> None:
    """Send a flow over TCP. The receiver measures it."""
    tcp_stream.send(*args)


def take_part(coordinator: Coordinator, name: str | None, options: NodeOptions, version: str) -> None:
    """Join under this name, and serve until the end of the run. Raises Lost."""
    coordinator.send(Join(name or socket.gethostname().partition(".")[0], version))
    Node(coordinator, options).serve()
