"""The "link down" and "link up" events of the kernel log, by port."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...facts.machine import Event, Net, Node, Pci, Port
from ...inventory.snapshot import Snapshot
from ..core.log_history import events

_SINCE_BOOT = re.compile(r"\[ {0,8}([0-9]{1,8})\.[0-9]{3,6}\]")
_BOOTING = 600.0  # seconds


def downs_of(snapshot: Snapshot) -> Mapping[str, list[Event]]:
    """The "link down" events of the kernel log, by port, without virtual functions."""
    return _by_port(snapshot, "link down")


def ups_of(snapshot: Snapshot) -> Mapping[str, list[Event]]:
    """The "link up" events of the kernel log, by port, without virtual functions."""
    return _by_port(snapshot, "link up")


def readies_of(snapshot: Snapshot) -> Mapping[str, list[Event]]:
    """The "link ready" events of the kernel log, by port: they end "link down", and say nothing else."""
    return _by_port(snapshot, "link ready")


def is_last(down: Event, others: Sequence[Event]) -> bool:
    """Whether the last line of an event is after the last lines of the others. Lines of one time are in their order."""

    def order(event: Event) -> tuple[float, int]:
        return event.at or 0.0, event.place or 0

    return all(order(down) > order(other) for other in others)


def while_running(snapshot: Snapshot, event: Event) -> bool:
    """Whether the machine was up for ten minutes. Drivers stop and start their ports while a machine boots.

    In a text without seconds since boot: whether the text lacks the beginning of the boot.
    """
    line = event.cites["text"].text if "text" in event.cites else ""
    if found := _SINCE_BOOT.search(line):
        return float(found[1]) >= _BOOTING
    node = snapshot.of(Node).get("node")
    return node is None or node.kernel is None


def _by_port(snapshot: Snapshot, kind: str) -> Mapping[str, list[Event]]:
    ports: dict[str, list[Event]] = defaultdict(list)
    for event in events(snapshot, kind):
        function = snapshot.of(Pci).get(event.subject or "")
        if not (function and function.physfn):
            ports[_port_key(snapshot, event)].append(event)
    return ports


def _port_key(snapshot: Snapshot, event: Event) -> str:
    """The key of the event's port. A network device that shares an RDMA port has the key of the RDMA port."""
    if event.link is not None:
        return f"{event.name}/{event.link}"
    name = event.name or ""
    if name not in snapshot.of(Net):
        name = next((net.key for net in snapshot.of(Net).values() if net.address == event.subject), name)
    return next((port.key for port in snapshot.of(Port).values() if port.netdev == name), name or str(event.subject))
