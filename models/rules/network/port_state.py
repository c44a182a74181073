"""NICs and their ports: present, up, and as fast as both ends and equal ports allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ...facts.machine import Net, Node, Port, Rdma
from ...facts.records import Evidence
from ...facts.units import as_gigabits, as_utc, from_gigabits
from ...inventory.inventory import UP
from ...inventory.nic_ports import both_ends
from ...inventory.present import earlier_item, removed
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Basis, Finding, Severity
from ..core.claims import BASES
from ..core.fabric_cards import fabric_functions, of_fabric, rdma_functions, unbound
from ..core.log_history import event_evidence, is_history
from ..core.machine_expectations import profile
from ..core.rule import Rule
from ..core.wording import location
from .port_claims import is_wanted, rate_claim, state_claim
from .port_downs import downs_of
from .port_roles import Role, role_of
from .ports import (
    AnyPort,
    adapter_name,
    cohort,
    function_of,
    network_of,
    rate_of,
    real,
    up,
)

_LANES = 4  # of an InfiniBand port; a cable that splits it has two lanes at each end
_ONE_LANE = "an InfiniBand port has four lanes, and this one runs on a single lane"
_LIDS = 0xBFFF  # the highest address of a port (InfiniBand Architecture Specification, 4.1.3)
_SDR = from_gigabits(10)  # of four lanes, or of one lane of QDR
_SLOWEST = "10 Gb/s is the lowest speed of InfiniBand (SDR): the two ends did not agree on a higher one"


def down(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """A port is down and should be up."""
    claim, role = state_claim(snapshot, port), role_of(snapshot, port) or _was_up(snapshot, port)
    if claim is None or claim.observed:
        return
    state, fields = _state(port)
    severity, why = _without_role(snapshot, port) if role is None else (role.severity, role.why)
    if role and role.basis == COHORT and role.severity == "warning" and _are_switched_off(snapshot, port):
        severity, why = "info", "several equal ports are switched off: nothing says that cables belong there"
    logged = [event for event in downs_of(snapshot).get(port.key, ()) if not is_history(snapshot, event)]
    recent = max((event.recent or 1 for event in logged), default=0)
    yield Finding(
        code="nic-port-down",
        severity=severity,
        confidence=_confidence(role),
        subject=port.key,
        subject_name=adapter_name(snapshot, port),
        case="no role" if severity == "info" else None,
        message=f"port {port.key} is down ({state}); {why}"
        + (f"; it went down {recent} times within an hour" if recent > 1 else ""),
        expected="up",
        observed=state,
        basis=role.basis if role else None,
        expected_source=role.why if role else None,
        cause="cable, transceiver, the port at the other end, or no subnet manager",
        location=_location(snapshot, port),
        evidence=(*_evidence(port, fields), *map(event_evidence, logged)),
    )


def _are_switched_off(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the port and more than a quarter of all equal ports have no cable: their physical state is Disabled."""
    equal = [port, *cohort(snapshot, port)]
    off = [one for one in equal if isinstance(one, Port) and one.physical_state == "Disabled" and not up(one)]
    return port in off and len(off) > 1 and 4 * len(off) > len(equal)


def had_address(port: AnyPort) -> str | None:
    """Why the port was up before: a subnet manager gives a port its LID while the port is up.

    The port keeps the LID when the link goes down; one that was never up has LID 0 or 65535.
    """
    if isinstance(port, Port) and port.lid and port.lid <= _LIDS and port.physical_state != "Disabled":
        return f"a subnet manager gave it LID {port.lid}: it was up before"
    return None


def _was_up(snapshot: Snapshot, port: AnyPort) -> Role | None:
    """The role of a port that was up before: a cable belongs there. The earlier inventory shows it, or its address."""
    if why := had_address(port):
        return Role("baseline", why, "warning")
    item, before = earlier_item(snapshot, "port", port.key), snapshot.inventory
    if item is None or before is None or item.state != UP or not is_wanted(snapshot, port):
        return None
    return Role("baseline", f"it was up at {as_utc(before.taken_at)}", "warning")


def _without_role(snapshot: Snapshot, port: AnyPort) -> tuple[Severity, str]:
    """Severity and reason for a port that is not known to belong to the fabric.

    It is a warning if none of several equal ports is up.
    """
    alike = cohort(snapshot, port)
    gpus = sum(1 for device in snapshot.topology.devices if device.kind == "gpu")
    if isinstance(port, Port) and alike and gpus > 1 and not any(up(other) for other in alike):
        return "warning", f"none of {len(alike) + 1} equal ports of this GPU node is up"
    if isinstance(port, Port) and port.physical_state != "Disabled" and _is_shown_alone(snapshot, port):
        return "warning", "the text shows no InfiniBand port that is up"
    return "info", "nothing says that a cable belongs there"


def _is_shown_alone(snapshot: Snapshot, port: Port) -> bool:
    """Whether a text shows only InfiniBand ports that are down: a person asks why."""
    every = [one for one in snapshot.of(Port).values() if one.link_layer == "InfiniBand"]
    return snapshot.origin == "dumps" and port in every and not any(up(one) for one in snapshot.of(Port).values())


def _state(port: AnyPort) -> tuple[str, tuple[str, ...]]:
    """The state of a port that is down, as text, and the fields with the evidence."""
    if isinstance(port, Port):
        return "/".join(filter(None, (port.state, port.physical_state))), ("state", "physical_state")
    return ("no carrier", ("carrier",)) if port.enabled else ("switched off", ("enabled",))


def slow(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """A port is slower than both its ends support, or slower than its machine type, product or equal ports."""
    claim, rate = rate_claim(snapshot, port), rate_of(snapshot, port)
    if claim is None or rate is None:
        return
    against = claim.contradicted
    able = (BASES[against.by], against.least, against.source) if against else _able(snapshot, port, rate)
    if able is None or rate >= able[1]:
        return
    basis, best, source = able
    role = role_of(snapshot, port)
    function = function_of(snapshot, port)
    yield Finding(
        code="nic-rate-low",
        severity=role.severity if role else "warning" if source in (_ONE_LANE, _SLOWEST) else "info",
        confidence=_confidence(role),
        subject=port.key,
        subject_name=adapter_name(snapshot, port),
        message=f"port {port.key} runs at {as_gigabits(rate)} of {as_gigabits(best)}",
        expected=best,
        observed=rate,
        unit="bytes_per_second",
        basis=basis,
        expected_source=source,
        cause="a cable, transceiver or port at the other end that is of a lower rate, or lanes that did not train",
        limits={f"{function.key}>{port.key}": rate} if function else {},
        location=_location(snapshot, port),
        evidence=_evidence(port, ("rate", "speed")),
    )


def _confidence(role: Role | None) -> Literal["certain", "likely"]:
    """ "likely" if only equal ports are the reference: a node may have equal NICs in different networks."""
    return "certain" if role is None or role.severity == "critical" else "likely"


def _able(snapshot: Snapshot, port: AnyPort, rate: float) -> tuple[Basis, float, str] | None:
    """What the port itself shows: one lane of the four of each InfiniBand port, its lowest speed, or the speeds of both
    ends.
    """
    if isinstance(port, Port) and port.link_layer == "InfiniBand":
        if (port.lanes or "").startswith("1X"):
            return "capability", _LANES * rate, _ONE_LANE
        if rate <= _SDR:
            return "capability", _LANES * _SDR, _SLOWEST
    return _both_ends(network_of(snapshot, port))


def _both_ends(port: Net | None) -> tuple[Basis, float, str] | None:
    """The fastest speed that both ends of an Ethernet link support."""
    both = both_ends(port)
    if port is None or port.max_speed is None or port.partner_speed is None or both is None:
        return None
    source = f"the port supports {as_gigabits(port.max_speed)}, its partner {as_gigabits(port.partner_speed)}"
    return "capability", both, source


def has_expected_count(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes whose machine type has a number of RDMA devices."""
    known = profile(snapshot)
    return known is not None and known.machine.rdma is not None


def too_few(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The node has fewer RDMA devices than the machine type."""
    known, fabric = profile(snapshot), fabric_functions(snapshot)
    seen = sorted(key for key, adapter in snapshot.of(Rdma).items() if adapter.address in fabric)
    assert known
    machine = known.machine
    assert machine.rdma is not None
    if len(fabric) + len(of_fabric(snapshot, removed(snapshot, "nic"))) >= machine.rdma:
        return  # host/inventory.py reports each NIC that was there before
    others = len(rdma_functions(snapshot)) - len(fabric)
    bare = unbound(snapshot)
    yield Finding(
        code="nic-missing",
        severity="warning" if node.virtual and known.basis == "profile" else "critical",
        subject="node",
        message=f"{len(fabric)} of the {machine.rdma} RDMA devices of {machine.name} are there"
        + (f"; {others} more {'are' if others > 1 else 'is'} of another kind (storage, management)" if others else "")
        + (f"; without an RDMA device: {', '.join(bare)}" if bare else ""),
        expected=machine.rdma,
        observed=len(fabric),
        unit="devices",
        basis=known.basis,
        expected_source=known.source,
        cause="NICs that were not attached when the instance was launched, or whose driver is not loaded"
        if node.virtual
        else "a NIC that is not on the bus, or whose driver is not loaded",
        evidence=(Evidence("sys/class/infiniband", " ".join(seen) or "empty"),),
    )


def _location(snapshot: Snapshot, port: AnyPort) -> dict[str, str | int | None]:
    function = function_of(snapshot, port)
    return location(function) if function else {}


def _evidence(port: AnyPort, fields: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(port.cites[field] for field in fields if field in port.cites)


RULES = (
    Rule("nic-port-down", Port, ("device", "state", "Rdma"), down, real),
    Rule("nic-port-down", Net, ("enabled", "carrier?"), down, real),
    Rule("nic-rate-low", Port, ("device", "rate"), slow, real),
    Rule("nic-rate-low", Net, ("speed",), slow, real),
    Rule("nic-missing", Node, ("Rdma", "Pci", "Node.product", "Node.vendor"), too_few, has_expected_count),
)
