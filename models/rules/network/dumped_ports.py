"""Ports in a dump that shows neither their product nor their place in the machine.

Evidence is what such a port says of itself, and the ports beside it: one that differs from all others is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ...catalog.log_messages import message
from ...facts.machine import NcclFailure, Net, Node, Port, Rdma
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import as_gigabits, from_gigabits
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Basis, Finding, Severity
from ..core.log_history import events_about
from ..core.rule import Rule
from ..core.wording import cited, gap, titled
from .port_roles import is_unconfigured
from .port_state import had_address
from .ports import AnyPort, function_of, real, up

# Software devices, and devices of containers and virtual machines
_SOFTWARE = re.compile(r"(?:rxe|siw|lo|docker|veth|br|virbr|bond|team|tun|tap|cali|flannel|cni|dummy|wl)")
_MANAGEMENT = r"(?:bmc|usb|idrac|ilo|ipmi|mgmt)"
_EQUAL = (4, 8, 16)  # ports of a machine of which all are alike; a ninth port may belong to another network
_FEWEST_WIRED, _FEWEST = 4, 6  # InfiniBand ports, and Ethernet ports with RDMA: some servers leave one without a cable
_NOT_LINKED = ("Polling", "Disabled", "Sleep", "Down")
_MOST_NETWORKS = 2  # of a machine: one for jobs, one for storage
_PAIR = "queue pair"  # the failure of NCCL to connect
_TENTH, _HALF = 0.1, 0.5
_FAST, _OF_FABRIC = from_gigabits(25), from_gigabits(100)
_GIGABIT, _OLD = from_gigabits(1), from_gigabits(0.1)


def nameless(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select ports of hardware that only the text names."""
    if snapshot.origin != "dumps" or _SOFTWARE.match(port.key):
        return False
    return function_of(snapshot, port) is None and not real(snapshot, port)


def _others(snapshot: Snapshot, port: AnyPort) -> list[AnyPort]:
    """The ports whose names differ only in numbers, with the same link layer."""
    every: list[AnyPort] = [*snapshot.of(Port).values()] if isinstance(port, Port) else [*snapshot.of(Net).values()]
    same = [one for one in every if one.key != port.key and _form(one) == _form(port)]
    return [one for one in same if nameless(snapshot, one)]


def _form(port: AnyPort) -> tuple[str, str | None]:
    layer = port.link_layer if isinstance(port, Port) else port.link_type
    return re.sub(r"[0-9]+", "0", port.key), layer


def _is_of_fabric(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the port has RDMA, or is one of several fast ones. Management ports often have no cable."""
    if isinstance(port, Port) or any(one.netdev == port.key for one in snapshot.of(Port).values()):
        return True
    others = [one for one in _others(snapshot, port) if isinstance(one, Net)]
    return bool(others) and all((one.speed or 0) >= _FAST for one in others)


def one_of_several(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select nameless ports with RDMA of which the text has several of one kind."""
    if not (nameless(snapshot, port) and _is_of_fabric(snapshot, port)):
        return False
    wired = _form(port)[1] in ("InfiniBand", "infiniband")
    return len(_others(snapshot, port)) + 1 >= (_FEWEST_WIRED if wired else _FEWEST)


def is_blamed(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select nameless ports in a text in which NCCL could not connect over RDMA."""
    return isinstance(port, Port) and _PAIR in snapshot.of(NcclFailure) and nameless(snapshot, port)


def has_reference(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select nameless ports with equal ones beside them, or with their own fastest mode."""
    if not nameless(snapshot, port):
        return False
    own = isinstance(port, Net) and port.max_speed is not None and port.carrier is True
    return own or _wanted(port) is not None or len(_others(snapshot, port)) + 1 in _EQUAL


def down(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """The only port that is down of several equal ones. Other ports that are down are information."""
    if up(port) is not False or (isinstance(port, Net) and port.enabled is False):
        return
    others, name = _others(snapshot, port), port.key
    if why := had_address(port):
        yield _is_down(port, f"{titled(port)} is down; {why}", basis="baseline", expected_source=why)
    elif isinstance(port, Port) and is_unconfigured(port):
        why = "its link is up, and no subnet manager has configured it"
        yield _is_down(port, f"{titled(port)} is in the state {port.state}: {why}", "capability", why)
    elif one_of_several(snapshot, port) and all(up(one) is True for one in others):
        cohort = f"{len(others)} others of this kind"
        found = _is_down(port, f"port {name} is down; the {cohort} are up", COHORT, f"{cohort} in the same text")
        yield replace(found, subject=_with_device(snapshot, port))
    elif _asks(snapshot, port) and not (is_blamed(snapshot, port) and any(unconnected(snapshot, port))):
        found = _is_down(port, f"port {name} is down; nothing says that a cable belongs there")
        cause = "no cable, or a fault of the cable, transceiver or the port at the other end"
        yield replace(found, severity="info", confidence="possible", case="no role", cause=cause)


def _is_down(port: AnyPort, message: str, basis: Basis | None = None, expected_source: str | None = None) -> Finding:
    return Finding(
        code="nic-port-down",
        severity="warning",
        confidence="likely",
        subject=port.key,
        message=message,
        expected="up",
        observed="down",
        basis=basis,
        expected_source=expected_source,
        cause="cable, transceiver, the port at the other end, or no subnet manager",
        evidence=cited(port, "state" if isinstance(port, Port) else "carrier"),
    )


def _asks(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether a text asks about the port: it has RDMA, or the text shows no network device that is up."""
    if isinstance(port, Port):
        return not has_message(snapshot, port)
    return not any(up(one) for one in snapshot.of(Net).values())


def has_message(snapshot: Snapshot, port: Port) -> bool:
    """Whether a message says that the port is down. It is a finding of its own."""
    about = events_about(snapshot, port.device or "", "message")
    return any(message(one.name or "").code == "nic-port-down" for one in about)


def unconnected(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """NCCL could not connect over RDMA, and the text shows only ports that are down."""
    if any(up(one) is not False for one in snapshot.of(Port).values()):
        return
    why = "NCCL made no RDMA connection, and the text shows no RDMA port that is up"
    found = _is_down(port, f"{titled(port)} is down; {why}")
    cause = "cable, transceiver, the port at the other end, or a network device that was not set up"
    evidence = (*found.evidence, *cited(snapshot.of(NcclFailure)[_PAIR], "text"))
    yield replace(found, cause=cause, evidence=evidence)


def _with_device(snapshot: Snapshot, port: AnyPort) -> str:
    """The RDMA port of a network device, or the port itself."""
    ports = (one.key for one in snapshot.of(Port).values() if isinstance(port, Net) and one.netdev == port.key)
    return next(ports, port.key)


def is_contradictory(snapshot: Snapshot, port: Port) -> bool:
    """Select ports of hardware that are active although their physical link is not up."""
    down = port.state == "ACTIVE" and port.physical_state in _NOT_LINKED
    return down and snapshot.origin == "dumps" and not _SOFTWARE.match(port.key)


def contradictory(snapshot: Snapshot, port: Port) -> Iterator[NotChecked]:
    """A gap: one of both states is wrong, or of another time. Some drivers of software show it (rxe), too."""
    why = f"{titled(port)} has the state {port.state} and the physical state {port.physical_state}"
    yield from gap(snapshot, "Port.state", port.key, Reason.CONTRADICTED, why, "read both states again: ibstat")


def slow(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding | NotChecked]:
    """The only port of several equal ones that is slower, or a port far below its own fastest mode."""
    rate = _rate(port)
    if rate is None or up(port) is False:
        return
    wanted = _wanted(port)
    if wanted is not None:
        if rate < wanted:
            yield _slow(port, rate, wanted, "warning", "the text says that it should have this rate")
        return
    others = _others(snapshot, port)
    rates = {_rate(one) for one in others if up(one) is not False}  # a port that is down shows the lowest rate
    usual = next(iter(rates), None)
    able = not (isinstance(port, Net) and port.max_speed and rate >= port.max_speed)  # else it is of another product
    if usual and rate < usual and able and len(others) + 1 in _EQUAL and len(rates) == 1:
        yield _slow(port, rate, usual, "warning", f"all {len(others)} others of this kind in the same text")
    elif isinstance(port, Net) and port.max_speed and _is_linked(port) and rate <= _HALF * port.max_speed:
        far = rate <= _TENTH * port.max_speed and (port.max_speed >= _FAST or _is_old(snapshot, port))
        yield _slow(port, rate, port.max_speed, "warning" if far else "info", "the modes that the port supports")
        slower = port.partner_speed is not None and port.partner_speed <= rate
        if port.max_speed >= _OF_FABRIC and not far and not slower:
            why = f"{as_gigabits(rate)} of {as_gigabits(port.max_speed)}, and the text does not show the other end"
            yield from gap(
                snapshot, "Net.speed", port.key, Reason.INCOMPLETE, why, "the rate of the port of the switch"
            )


def _is_old(snapshot: Snapshot, port: Net) -> bool:
    """Whether it is the only linked port of a text and runs at a rate that no switch of today has. One pair of wires
    that is broken lowers a gigabit to it.
    """
    ports: list[AnyPort] = [*snapshot.of(Net).values(), *snapshot.of(Port).values()]
    others = (one for one in ports if one.key != port.key and (up(one) or _rate(one)) and up(one) is not False)
    able = (port.max_speed or 0) >= _GIGABIT and (port.partner_speed or _GIGABIT) >= _GIGABIT
    return able and (port.speed or 0) <= _OLD and not any(others) and not re.match(_MANAGEMENT, port.key)


def _is_linked(port: Net) -> bool:
    """Whether the port has a partner: a text may end before the line that says so."""
    return port.carrier or (port.carrier is None and port.partner_speed is not None)


def _wanted(port: AnyPort) -> float | None:
    return port.wanted_rate if isinstance(port, Port) else None


def _rate(port: AnyPort) -> float | None:
    return port.rate if isinstance(port, Port) else port.speed


def _slow(port: AnyPort, rate: float, best: float, severity: Severity, source: str) -> Finding:
    return Finding(
        code="nic-rate-low",
        severity=severity,
        confidence="likely" if severity == "warning" else "possible",
        subject=port.key,
        message=f"{titled(port)} runs at {as_gigabits(rate)} of {as_gigabits(best)}",
        expected=best,
        observed=rate,
        unit="bytes_per_second",
        basis=COHORT if isinstance(port, Port) else "capability",
        expected_source=source,
        cause="a cable, transceiver or port at the other end that is of a lower rate, or lanes that did not train",
        evidence=(*cited(port, "rate" if isinstance(port, Port) else "speed"),),
    )


def _unequal(snapshot: Snapshot) -> list[Port]:
    """Ports that may be equal and have different rates: nothing tells which of them is slow. Adapters whose type is
    not known are compared if they have more rates than the two of a network for jobs and one for storage.
    """
    kinds: dict[tuple[str | None, str | None], list[Port]] = {}
    for port in snapshot.of(Port).values():
        device = snapshot.of(Rdma).get(port.device or "")
        kind = "" if port.device is None else device.hca_type if device else None  # "": the text names no adapter
        if function_of(snapshot, port) is None and up(port) is not False and port.rate:
            kinds.setdefault((kind, port.link_layer), []).append(port)
    unclear = (ports for (kind, _), ports in kinds.items() if _is_unclear([port.rate or 0 for port in ports], kind))
    return next(unclear, [])


def _is_unclear(rates: list[float], kind: str | None) -> bool:
    different, one_slower = len(set(rates)), rates.count(min(rates)) == 1
    if kind is None:
        return different > _MOST_NETWORKS and one_slower
    decided = different == _MOST_NETWORKS and len(rates) in _EQUAL  # slow() names it
    return different > 1 and (len(rates) < _FEWEST_WIRED or (one_slower and not decided))


def has_unequal(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such ports."""
    return snapshot.origin == "dumps" and bool(_unequal(snapshot))


def unequal(snapshot: Snapshot, node: Node) -> Iterator[NotChecked]:
    """A gap: adapters of one type can be in different networks."""
    rates = ", ".join(f"{port.key} {as_gigabits(port.rate or 0)}" for port in _unequal(snapshot))
    named = all(port.device for port in _unequal(snapshot))
    why = f"ports of {'equal adapters' if named else 'adapters without names'} have different rates: {rates}"
    yield from gap(snapshot, "Port.rate", "node", Reason.INCOMPLETE, why, "ibstat of an equal node; mlxlink -d DEVICE")


RULES = (
    Rule("nic-port-down", Port, ("state", "physical_state"), contradictory, is_contradictory),
    Rule("nic-rate-low", Node, (), unequal, has_unequal),
    Rule("nic-port-down", Port, ("state",), down, nameless),
    Rule("nic-port-down", Port, ("state",), unconnected, is_blamed),
    Rule("nic-port-down", Net, ("carrier",), down, one_of_several),
    Rule("nic-rate-low", Port, ("rate",), slow, has_reference),
    Rule("nic-rate-low", Net, ("speed",), slow, has_reference),
)
