"""The "link down" events of the kernel log, by port."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ...facts.machine import Event, Net, Pci, Port
from ...inventory.snapshot import Snapshot
from ..core.log_history import events


def downs_of(snapshot: Snapshot) -> Mapping[str, list[Event]]:
    """The "link down" events of the kernel log, by port, without virtual functions."""
    ports: dict[str, list[Event]] = defaultdict(list)
    for event in events(snapshot, "link down"):
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
