"""NICs and their ports: there, up, and as fast as they and their kin can be."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TypeAlias

from ..case import Case
from ..facts import Net, Node, Pci, Port, Rdma
from ..pci_classes import function_number
from ..report import Basis, Finding
from ..said import Evidence
from ..units import as_gigabits
from .rule import Rule
from .words import location, named

AnyPort: TypeAlias = "Port | Net"
_FEWEST_KIN = 2


def real(case: Case, port: AnyPort) -> bool:
    """A port of hardware whose state means something, judged once: not through its network device as well.

    The efa driver hard-codes ACTIVE and LinkUp (drivers/infiniband/hw/efa/efa_verbs.c, efa_query_port); software
    devices (rxe, siw) have no port of their own.
    """
    if isinstance(port, Port):
        adapter = case.of(Rdma).get(port.device or "")
        return bool(adapter and adapter.address and adapter.driver != "efa")
    shared = any(other.netdev == port.key for other in case.of(Port).values())
    return bool(port.address) and port.link_type == "ethernet" and not shared


def down(case: Case, port: AnyPort) -> Iterator[Finding]:
    """A port that should be up and is not. Spare ports are none: nobody wants them up, and their kin are down too."""
    if up(port) is not False:
        return
    role = _role(case, port)
    network = _network(case, port)
    if role is None and not (network and network.enabled):
        return
    state, fields = _state(port)
    yield Finding(
        code="nic-port-down",
        severity="critical" if role else "info",
        subject=port.key,
        subject_name=_adapter_name(case, port),
        message=f"port {port.key} is down ({state})"
        + (f"; {role[1]}" if role else "; it is switched on, and nothing says that a cable belongs there"),
        expected="up",
        observed=state,
        basis=role[0] if role else None,
        expected_source=role[1] if role else None,
        cause="cable, transceiver, the port at the other end, or no subnet manager",
        location=_location(case, port),
        evidence=_evidence(port, fields),
    )


def _state(port: AnyPort) -> tuple[str, tuple[str, ...]]:
    """What a port that is down is called, and the fields that say so."""
    if isinstance(port, Port):
        return f"{port.state}/{port.physical_state}", ("state", "physical_state")
    return ("no carrier", ("carrier",)) if port.enabled else ("switched off", ("enabled",))


def slow(case: Case, port: AnyPort) -> Iterator[Finding]:
    """A port that runs below what both its ends can do, or below its kin."""
    rate = port.rate if isinstance(port, Port) else port.speed
    if rate is None or up(port) is not True:
        return
    role = _role(case, port)
    able = _both_ends(_network(case, port)) or _of_kin(case, port)
    if able is None or rate >= able[1]:
        return
    basis, best, source = able
    yield Finding(
        code="nic-rate-low",
        severity="critical" if role else "info",
        subject=port.key,
        subject_name=_adapter_name(case, port),
        message=f"port {port.key} runs at {as_gigabits(rate)} of {as_gigabits(best)}",
        expected=best,
        observed=rate,
        unit="bytes_per_second",
        basis=basis,
        expected_source=source,
        cause="cable or transceiver of a lower rate, lanes that did not train, or a limit at the other end",
        limits={f"{_device(case, port)}>{port.key}": rate},
        location=_location(case, port),
        evidence=_evidence(port, ("rate", "speed")),
    )


def up(port: AnyPort) -> bool | None:
    """Whether the port carries traffic; None where it does not say."""
    if isinstance(port, Net):
        return False if port.enabled is False else port.carrier
    return None if port.state is None else port.state == "ACTIVE"


def kin(case: Case, port: AnyPort) -> list[AnyPort]:
    """The same port of the same product elsewhere in the node: port 2 of every card is not kin of port 1."""
    mine = _product(case, port)
    others: list[AnyPort] = list(case.of(Port).values()) if isinstance(port, Port) else list(case.of(Net).values())
    return [other for other in others if other.key != port.key and mine and _product(case, other) == mine]


def _product(case: Case, port: AnyPort) -> tuple[object, ...] | None:
    function = _function(case, port)
    if function is None:
        return None
    adapter = case.of(Rdma).get(port.device or "") if isinstance(port, Port) else None
    numbers = (function_number(function.key), port.key.rpartition("/")[2] if adapter else port.port)  # type: ignore[union-attr]
    ids = (function.vendor, function.device, function.subdevice, function.physfn is None)
    return *ids, adapter.board_id if adapter else None, numbers


def _role(case: Case, port: AnyPort) -> tuple[Basis, str] | None:
    """Why the port belongs to the fabric, and by what basis; None where nothing says so."""
    names = [port.key, *([port.device or ""] if isinstance(port, Port) else [])]
    if any(fnmatchcase(name, pattern) for name in names for pattern in case.site.fabric):
        return "site", "the site file names it as fabric"
    alike = kin(case, port)
    working = [other for other in alike if up(other)]
    if len(working) >= _FEWEST_KIN and 2 * len(working) > len(alike):
        return "kin", f"{len(working)} of {len(alike)} equal ports of this node are up"
    return None


def _network(case: Case, port: AnyPort) -> Net | None:
    """The network device of the port."""
    return case.of(Net).get(port.netdev or "") if isinstance(port, Port) else port


def _both_ends(port: Net | None) -> tuple[Basis, float, str] | None:
    """The fastest mode that both ends of an Ethernet link have."""
    if port is None or port.max_speed is None or port.partner_speed is None:
        return None
    both = min(port.max_speed, port.partner_speed)
    source = f"the port supports {as_gigabits(port.max_speed)}, its partner {as_gigabits(port.partner_speed)}"
    return "capability", both, source


def _of_kin(case: Case, port: AnyPort) -> tuple[Basis, float, str] | None:
    """What most equal ports of this node run at."""
    rates = [other.rate if isinstance(other, Port) else other.speed for other in kin(case, port) if up(other)]
    known = [rate for rate in rates if rate is not None]
    if len(known) < _FEWEST_KIN:
        return None
    usual = statistics.mode(known)
    if 2 * known.count(usual) <= len(known):
        return None
    return "kin", usual, f"{known.count(usual)} of {len(known)} equal ports of this node run at it"


def counted(case: Case, node: Node) -> bool:
    """Where somebody says how many there should be."""
    return case.machine is not None and case.machine.rdma is not None


def too_few(case: Case, node: Node) -> Iterator[Finding]:
    """Fewer RDMA devices than the machine type has."""
    machine = case.machine
    seen = sorted(key for key, adapter in case.of(Rdma).items() if adapter.address)
    assert machine
    assert machine.rdma is not None
    if len(seen) >= machine.rdma:
        return
    own = machine in case.site.machine
    yield Finding(
        code="nic-missing",
        severity="warning" if node.virtual and not own else "critical",
        subject="node",
        message=f"{len(seen)} RDMA devices, a {machine.name} has {machine.rdma}",
        expected=machine.rdma,
        observed=len(seen),
        unit="devices",
        basis="site" if own else "profile",
        expected_source=machine.source,
        cause="NICs that were not attached when the instance was launched, or whose driver is not loaded"
        if node.virtual
        else "a NIC that is not on the bus, or whose driver is not loaded",
        evidence=(Evidence("sys/class/infiniband", " ".join(seen) or "empty"),),
    )


def _device(case: Case, port: AnyPort) -> str | None:
    function = _function(case, port)
    return function.key if function else None


def _function(case: Case, port: AnyPort) -> Pci | None:
    adapter = case.of(Rdma).get(port.device or "") if isinstance(port, Port) else None
    address = adapter.address if adapter else None if isinstance(port, Port) else port.address
    return case.of(Pci).get(address or "")


def _adapter_name(case: Case, port: AnyPort) -> str | None:
    function = _function(case, port)
    return named(case, function) if function else None


def _location(case: Case, port: AnyPort) -> dict[str, str | int | None]:
    function = _function(case, port)
    return location(function) if function else {}


def _evidence(port: AnyPort, fields: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(port.cites[field] for field in fields if field in port.cites)


RULES = (
    Rule("nic-port-down", Port, ("device", "state", "Rdma"), down, real),
    Rule("nic-port-down", Net, ("enabled", "carrier?", "Rdma", "Port"), down, real),
    Rule("nic-rate-low", Port, ("device", "rate"), slow, real),
    Rule("nic-rate-low", Net, ("speed",), slow, real),
    Rule("nic-missing", Node, ("Rdma", "Pci", "Node.product", "Node.vendor"), too_few, counted),
)
