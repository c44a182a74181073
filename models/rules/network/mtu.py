"""Packet sizes: equal ports must have the same, and fast ports should have large packets."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Port
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...facts.units import from_gigabits
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule
from ..core.wording import gap, missed
from .port_roles import role_of
from .ports import adapter_name, cohort, network_of, rate_of, real, up

# RDMA payload sizes and the size of the headers in an Ethernet packet, bytes: include/rdma/ib_addr.h, iboe_get_mtu().
_SIZES, _HEADERS = (4096, 2048, 1024, 512, 256), 96
_SMALL = 1024  # bytes; the payload with an Ethernet MTU of 1500
_FAST = from_gigabits(100)
_OTHERS = 2  # other ports that agree: with two different ports there is no majority


def payload(snapshot: Snapshot, port: Port) -> int | None:
    """Payload bytes of an RDMA packet. For RoCE, from the MTU of the network device if the port has no value."""
    network = network_of(snapshot, port)
    if port.mtu is not None or port.link_layer != "Ethernet" or network is None or network.mtu is None:
        return port.mtu
    return next((size for size in _SIZES if size + _HEADERS <= network.mtu), None)


def working(snapshot: Snapshot, port: Port) -> bool:
    """Select ports that carry traffic and whose packet size is known."""
    return real(snapshot, port) and up(port) is True and payload(snapshot, port) is not None


def unknown_size(snapshot: Snapshot, port: Port) -> bool:
    """Select RoCE ports that carry traffic and whose packet size is not known, except in dumps."""
    network = network_of(snapshot, port)
    reported = missed(snapshot, "Port.link_layer", port.key) or (network and missed(snapshot, "Net.mtu", network.key))
    roce = port.link_layer is None or (port.link_layer == "Ethernet" and network is not None)
    working = real(snapshot, port) and up(port) is True
    return snapshot.origin != "dumps" and roce and working and not reported and payload(snapshot, port) is None


def not_known(snapshot: Snapshot, port: Port) -> Iterator[NotChecked]:
    """One NotChecked for the port."""
    yield from gap(
        snapshot,
        "Port.mtu",
        port.key,
        Reason.OTHER,
        "neither the port nor its network device says how large its packets are",
    )


def different(snapshot: Snapshot, port: Port) -> Iterator[Finding]:
    """One port has another packet size than all equal ports with the same rate.

    If two ports differ, they may belong to another network.
    """
    mine, rate = payload(snapshot, port), rate_of(snapshot, port)
    others = [payload(snapshot, other) for other in _cohort(snapshot, port) if rate_of(snapshot, other) == rate]
    count = len(others)
    if rate is None or count < _OTHERS or len(set(others)) != 1 or mine in others:
        return
    usual = others[0]
    yield Finding(
        code="nic-mtu",
        severity="warning",
        confidence="likely",
        subject=port.key,
        subject_name=adapter_name(snapshot, port),
        message=f"port {port.key} sends packets of {mine} bytes{_of(snapshot, port)}, {count} equal ports of this node "
        f"{usual}",
        expected=usual,
        observed=mine,
        unit="bytes",
        basis=COHORT,
        expected_source=f"{count} equal ports of this node",
        cause="the network's configuration of this device; larger packets than its peers take are lost",
        evidence=_evidence(snapshot, port),
    )


def small(snapshot: Snapshot, port: Port) -> Iterator[Finding]:
    """All ports of a fast RoCE fabric have the packet size of an MTU of 1500. One finding, on the first port."""
    alike = [port, *_cohort(snapshot, port)]
    if port.link_layer != "Ethernet" or port.key != min(one.key for one in alike) or role_of(snapshot, port) is None:
        return
    if not all((payload(snapshot, one) or 0) <= _SMALL and (rate_of(snapshot, one) or 0) >= _FAST for one in alike):
        return
    yield Finding(
        code="nic-mtu",
        severity="info",
        subject=port.key,
        subject_name=adapter_name(snapshot, port),
        message=f"{len(alike)} RoCE ports send packets of {payload(snapshot, port)} bytes{_of(snapshot, port)}; "
        f"their NICs can send {_SIZES[0]}",
        expected=_SIZES[0],
        observed=payload(snapshot, port),
        unit="bytes",
        basis="capability",
        expected_source="Linux include/rdma/ib_addr.h: an MTU of 4192 and more leaves 4096 bytes for RDMA",
        cause="the MTU of the network devices was not raised: more packets for the same bytes",
        evidence=_evidence(snapshot, port),
    )


def _cohort(snapshot: Snapshot, port: Port) -> list[Port]:
    """Equal ports that carry traffic."""
    return [other for other in cohort(snapshot, port) if isinstance(other, Port) and working(snapshot, other)]


def _of(snapshot: Snapshot, port: Port) -> str:
    network = network_of(snapshot, port)
    return f" (MTU {network.mtu} of {network.key})" if network and network.mtu else ""


def _evidence(snapshot: Snapshot, port: Port) -> tuple[Evidence, ...]:
    facts = (port, network_of(snapshot, port))
    return tuple(fact.cites["mtu"] for fact in facts if fact and "mtu" in fact.cites)


RULES = (
    Rule("nic-mtu", Port, ("device",), different, working),
    Rule("nic-mtu", Port, ("device",), small, working),
    Rule("nic-mtu", Port, ("device",), not_known, unknown_size),
)
