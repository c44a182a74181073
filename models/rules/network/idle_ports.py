"""Texts in which most RDMA ports, one of several of an unknown kind, or all network devices are down, and nothing says
that cables belong there.

A node has spare ports, and a network device of InfiniBand is down where nobody uses IP over it. So such a text shows
neither a fault nor health.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...facts.machine import Net, Node, Port
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, gap
from . import dumped_ports, port_state
from .ports import real, up

_SEVERAL = 4  # ports; pairs of ports often have a spare one
_HOW = "ibstat, and the number of ports that the node should use"


def _down(snapshot: Snapshot) -> list[Port]:
    """The ports that are down, if these are most of those whose state is known, or one of several ports without
    link layer: were they equal InfiniBand ports, it would be a fault.
    """
    states = {key: _is_up(snapshot, port) for key, port in snapshot.of(Port).items()}
    down = [snapshot.of(Port)[key] for key, state in states.items() if state is False]
    down = [port for port in down if not dumped_ports.has_message(snapshot, port)]
    known = sum(state is not None for state in states.values())
    nameless = all(port.link_layer is None for port in snapshot.of(Port).values())
    return down if 2 * len(down) > known or (nameless and len(down) == 1 and known >= _SEVERAL) else []


def _is_up(snapshot: Snapshot, port: Port) -> bool | None:
    network = snapshot.of(Net).get(port.netdev or "")
    return up(port) if port.state or network is None else up(network)


def _findings(snapshot: Snapshot, port: Port) -> list[Finding]:
    """What other rules report about the port, or about its network device."""
    network = snapshot.of(Net).get(port.netdev or "")
    found = list(dumped_ports.unconnected(snapshot, port)) if dumped_ports.is_blamed(snapshot, port) else []
    for one in (port, network) if network else (port,):
        if real(snapshot, one):
            found += port_state.down(snapshot, one)
        elif dumped_ports.nameless(snapshot, one):
            found += dumped_ports.down(snapshot, one)
    return found


def are_down(snapshot: Snapshot, node: Node) -> bool:
    """Select texts in which ports are down whose role decides the verdict."""
    return snapshot.origin == "dumps" and bool(_down(snapshot))


def idle(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """A gap, and information about the ports. Nothing if another rule reports a fault of them."""
    down = _down(snapshot)
    known = [one for port in down for one in _findings(snapshot, port)]
    if any(one.severity != "info" for one in known):
        return
    if not known:
        yield _information(snapshot, down)
    why = f"{len(down)} of {len(snapshot.of(Port))} RDMA ports are down, and nothing says which should be up"
    yield from gap(snapshot, "Port.state", "node", Reason.INCOMPLETE, why, _HOW)


def nets_are_down(snapshot: Snapshot, node: Node) -> bool:
    """Select texts in which all network devices are down, and no RDMA port is shown."""
    states = [up(net) for net in snapshot.of(Net).values()]
    return snapshot.origin == "dumps" and False in states and True not in states and not snapshot.of(Port)


def idle_nets(snapshot: Snapshot, node: Node) -> Iterator[NotChecked]:
    """A gap: such a text shows neither a fault nor health."""
    names = ", ".join(islice(snapshot.of(Net), 4))
    why = f"no network device is up ({names}), and nothing says which should be"
    yield from gap(snapshot, "Net.carrier", "node", Reason.INCOMPLETE, why, "ip -br link; ethtool of each device")


def _information(snapshot: Snapshot, down: list[Port]) -> Finding:
    names = ", ".join(port.key for port in down[:8]) + (" and more" if len(down) > 8 else "")
    network = snapshot.of(Net).get(down[0].netdev or "")
    return Finding(
        code="nic-port-down",
        severity="info",
        confidence="possible",
        subject=down[0].key if len(down) == 1 else "node",
        case="no role",
        message=f"{len(down)} of {len(snapshot.of(Port))} RDMA ports are down ({names}); nothing says that cables "
        "belong there",
        expected="up",
        observed="down",
        cause="ports that are not used, or a fault of cables, transceivers or the subnet manager",
        evidence=cited(down[0], "state", "physical_state") or (cited(network, "carrier") if network else ()),
    )


RULES = (
    Rule("nic-port-down", Node, (), idle, are_down),
    Rule("nic-port-down", Node, (), idle_nets, nets_are_down),
)
