"""Sizes of packets: the same on all equal ports, and large on fast ones."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Port
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...facts.units import from_gigabits
from ...inventory.snapshot import Case
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import gap, missed
from .ports import adapter_name, kin, network_of, rate_of, real, role_of, up

# What RDMA may send in a packet, and what its headers take of an Ethernet one: include/rdma/ib_addr.h, iboe_get_mtu().
_SIZES, _HEADERS = (4096, 2048, 1024, 512, 256), 96
_SMALL = 1024  # that an Ethernet MTU of 1500 leaves
_FAST = from_gigabits(100)
_OTHERS = 2  # that are alike: of two ports nobody knows which is the odd one


def payload(case: Case, port: Port) -> int | None:
    """Bytes of a packet over RDMA; of RoCE what the network device's MTU leaves, where the port does not say."""
    network = network_of(case, port)
    if port.mtu is not None or port.link_layer != "Ethernet" or network is None or network.mtu is None:
        return port.mtu
    return next((size for size in _SIZES if size + _HEADERS <= network.mtu), None)


def working(case: Case, port: Port) -> bool:
    """A port that carries traffic, and says how large its packets are."""
    return real(case, port) and up(port) is True and payload(case, port) is not None


def mute(case: Case, port: Port) -> bool:
    """A RoCE port that carries traffic, of which a machine does not say how large its packets are; dumps need not."""
    network = network_of(case, port)
    told = missed(case, "Port.link_layer", port.key) or (network and missed(case, "Net.mtu", network.key))
    roce = port.link_layer is None or (port.link_layer == "Ethernet" and network is not None)
    working = real(case, port) and up(port) is True
    return case.origin != "dumps" and roce and working and not told and payload(case, port) is None


def unsaid(case: Case, port: Port) -> Iterator[NotChecked]:
    """Said once, on the port."""
    yield from gap(
        case,
        "Port.mtu",
        port.key,
        Reason.OTHER,
        "neither the port nor its network device says how large its packets are",
    )


def odd(case: Case, port: Port) -> Iterator[Finding]:
    """One port whose packets are of another size than those of all its kin at the same rate. Two may be of another
    network.
    """
    mine, rate = payload(case, port), rate_of(case, port)
    others = [payload(case, other) for other in _kin(case, port) if rate_of(case, other) == rate]
    count = len(others)
    if rate is None or count < _OTHERS or len(set(others)) != 1 or mine in others:
        return
    usual = others[0]
    yield Finding(
        code="nic-mtu",
        severity="warning",
        confidence="likely",
        subject=port.key,
        subject_name=adapter_name(case, port),
        message=f"port {port.key} sends packets of {mine} bytes{_of(case, port)}, {count} equal ports of this node "
        f"{usual}",
        expected=usual,
        observed=mine,
        unit="bytes",
        basis="kin",
        expected_source=f"{count} equal ports of this node",
        cause="the network's configuration of this device; larger packets than its peers take are lost",
        evidence=_evidence(case, port),
    )


def small(case: Case, port: Port) -> Iterator[Finding]:
    """All ports of a fast RoCE fabric send the small packets of the Internet: one finding, on the first."""
    alike = [port, *_kin(case, port)]
    if port.link_layer != "Ethernet" or port.key != min(one.key for one in alike) or role_of(case, port) is None:
        return
    if not all((payload(case, one) or 0) <= _SMALL and (rate_of(case, one) or 0) >= _FAST for one in alike):
        return
    yield Finding(
        code="nic-mtu",
        severity="info",
        subject=port.key,
        subject_name=adapter_name(case, port),
        message=f"{len(alike)} RoCE ports send packets of {payload(case, port)} bytes{_of(case, port)}; their NICs can "
        f"send {_SIZES[0]}",
        expected=_SIZES[0],
        observed=payload(case, port),
        unit="bytes",
        basis="capability",
        expected_source="Linux include/rdma/ib_addr.h: an MTU of 4192 and more leaves 4096 bytes for RDMA",
        cause="nobody raised the MTU of the network devices: more packets for the same bytes",
        evidence=_evidence(case, port),
    )


def _kin(case: Case, port: Port) -> list[Port]:
    """Equal ports that work."""
    return [other for other in kin(case, port) if isinstance(other, Port) and working(case, other)]


def _of(case: Case, port: Port) -> str:
    network = network_of(case, port)
    return f" (MTU {network.mtu} of {network.key})" if network and network.mtu else ""


def _evidence(case: Case, port: Port) -> tuple[Evidence, ...]:
    facts = (port, network_of(case, port))
    return tuple(fact.cites["mtu"] for fact in facts if fact and "mtu" in fact.cites)


RULES = (
    Rule("nic-mtu", Port, ("device",), odd, working),
    Rule("nic-mtu", Port, ("device",), small, working),
    Rule("nic-mtu", Port, ("device",), unsaid, mute),
)
