"""Kernel log events of NICs and their ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...facts.machine import Event, Net, Node, Pci, Port
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding, Severity
from ..core.log_history import by_subject, event_evidence, events, is_history, since, times, total_count
from ..core.rule import Rule
from ..core.wording import function_name, location
from ..gpu.pcie_events import any_logged
from .port_downs import downs_of, is_last, readies_of, ups_of, while_running
from .port_state import down
from .ports import real, up

_FLAPS = 3  # "link down" events in an hour: a restart of a switch or of a driver causes one or two
# Bursts of "link down" events in a day: twice _FLAPS, one in four hours. Azure's node check fails if a port goes down
# twice within six hours (Azure/azurehpc-health-checks, azure_ib_link_flapping.nhc).
_SLOW_FLAPS = 2 * _FLAPS
_RISES = 3  # "link up" events in an hour without "link down"; one or two are a start of the driver or of a bond
_FUNCTION = re.compile(r"^\w+:\d+:\(pid \d+\): ")  # of mlx5_core
_EXCERPT = 2  # the same in an excerpt whose port comes up as often
_CABLE = "the cable, a transceiver, or the port at the other end"


def nics(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The driver or firmware of a NIC logged a fault of the NIC or of the module in its cage."""
    for address, found in by_subject([one for one in events(snapshot, "nic", "module") if not _is_hot(one)]).items():
        function = snapshot.of(Pci).get(address)
        # Function 0 of device 0 is never a virtual function. Virtual functions come and go.
        gone = function is None and address.endswith(":00.0") and snapshot.origin != "dumps" and bool(snapshot.of(Pci))
        sick = [one for one in found if one.kind == "nic"]
        last = (sick or found)[-1]
        severity: Severity = "critical" if gone and sick else "warning"
        name = function_name(snapshot, function) if function else f"NIC {address}"
        yield Finding(
            code="nic-missing" if gone and sick else "nic-errors",
            kind="state" if gone and sick else "event",
            severity="info" if is_history(snapshot, last) and not (gone and sick) else severity,
            subject=address,
            subject_name=name if function else None,
            case="firmware" if sick else "module",
            fact=f"logged{_how_often(sick or found)}: {_message(last)}",
            message=f"the kernel logged of {name}{times(sick or found)}: {_message(last)}"
            + ("; it is not listed any more" if gone else ""),
            since=since(last),
            observed=total_count(sick or found),
            unit="count",
            cause="the NIC's firmware or hardware" if sick else "the transceiver or cable, or the power of the slot",
            location=location(function, snapshot) if function else {},
            evidence=tuple(event_evidence(one) for one in found),
        )


def modules(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The module in the cage of a NIC is hotter than its own limit."""
    for address, found in by_subject([one for one in events(snapshot, "module") if _is_hot(one)]).items():
        function = snapshot.of(Pci).get(address)
        name = function_name(snapshot, function) if function else f"NIC {address}"
        yield Finding(
            code="nic-optics",
            severity="info" if is_history(snapshot, found[-1]) else "warning",
            subject=address,
            subject_name=name if function else None,
            case="heat",
            fact="reports that the module in its cage is too hot",
            message=f"the module in the cage of {name} is too hot{times(found)}: {_message(found[-1])}",
            since=since(found[-1]),
            observed=total_count(found),
            unit="count",
            cause="airflow at the cage, the room's temperature, or the module itself",
            location=location(function, snapshot) if function else {},
            evidence=tuple(event_evidence(one) for one in found),
        )


def _how_often(found: list[Event]) -> str:
    count = total_count(found)
    return f" {count} times" if count > 1 else ""


def _is_hot(event: Event) -> bool:
    """Text of mlx5_pme_error_to_string() in drivers/net/ethernet/mellanox/mlx5/core/events.c."""
    return event.kind == "module" and "High Temperature" in (event.text or "")


def _message(event: Event) -> str:
    """The text of a log line without the prefixes of the device and of the function."""
    text = event.text or ""
    return _FUNCTION.sub("", text.partition(": ")[2].strip()) or text


def flaps(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A port went down several times within an hour or a day. port_state.py reports ports that are down now."""
    for port, found in downs_of(snapshot).items():
        known = snapshot.of(Port).get(port) or snapshot.of(Net).get(port)
        if known and real(snapshot, known) and any(one.severity != "info" for one in down(snapshot, known)):
            continue
        most = max(found, key=lambda one: one.recent or 1)
        timed = most.recent is not None or snapshot.origin != "dumps"
        downs, slowly = most.recent if timed else most.count, max(one.bursts or 1 for one in found)
        downs = downs or 1
        fewest = _fewest(snapshot, most, ups_of(snapshot).get(port, ()))
        if downs < fewest and slowly < _SLOW_FLAPS:
            continue
        span = "within an hour" if timed else "in lines without times"
        rate = f"{downs} times {span}" if downs >= fewest else f"at least {slowly} times within a day"
        yield Finding(
            code="nic-port-flapping",
            kind="event",
            severity="info" if is_history(snapshot, most) else "warning",
            subject=port,
            message=f"port {port} went down {rate}{times([most])}" + (" since boot" * (fewest == _FLAPS)),
            since=since(most),
            expected=0,
            observed=downs if downs >= fewest else slowly,
            unit="count",
            cause=_CABLE,
            evidence=(event_evidence(most),),
        )


def rises(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A running port came up several times, and no line says that it went down: the text left these lines out."""
    for port, found in ups_of(snapshot).items():
        most = max(found, key=lambda one: one.recent or one.count or 1)
        ups = most.recent or most.count or 1
        if port in downs_of(snapshot) or ups < _RISES or not while_running(snapshot, most):
            continue
        yield Finding(
            code="nic-port-flapping",
            kind="event",
            severity="info" if is_history(snapshot, most) else "warning",
            confidence="likely",
            subject=port,
            message=f"port {port} came up {ups} times within an hour, so it went down between",
            since=since(most),
            expected=1,
            observed=ups,
            unit="count",
            cause=_CABLE,
            evidence=(event_evidence(most),),
        )


def rose_again(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such a port."""
    return snapshot.origin == "dumps" and any(rises(snapshot, node))


def _fewest(snapshot: Snapshot, downs: Event, ups: Sequence[Event]) -> int:
    """How many times in an hour a port that flaps goes down.

    A person copies the lines of a port that worries him. So in an excerpt, a port that comes up as often flaps.
    """
    changes = sum(max((one.recent or one.count or 1 for one in found), default=0) for found in ((downs,), ups))
    excerpt = snapshot.origin == "dumps" and while_running(snapshot, downs)
    return _EXCERPT if excerpt and changes >= 2 * _EXCERPT else _FLAPS


def stays_down(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The log says that a running port went down, and not that it came up again. On a machine, its state shows it."""
    for port, found in downs_of(snapshot).items():
        last, ups = max(found, key=lambda one: (one.at or 0.0, one.place or 0)), ups_of(snapshot).get(port, ())
        worked, ends = bool(ups) or while_running(snapshot, last), (*ups, *readies_of(snapshot).get(port, ()))
        if snapshot.origin != "dumps" or port in _states(snapshot) or not (worked and is_last(last, ends)):
            continue
        yield Finding(
            code="nic-port-down",
            severity="info" if is_history(snapshot, last) else "warning",
            confidence="likely" if ups else "possible",
            subject=port,
            message=f"port {port} went down{times(found)}, and the log does not say that it came up again",
            since=since(last),
            expected="up",
            observed="down",
            cause=_CABLE,
            evidence=(event_evidence(last),),
        )


@once_per_snapshot
def _states(snapshot: Snapshot) -> frozenset[str]:
    """The ports whose state was read."""
    ports: tuple[Port | Net, ...] = (*snapshot.of(Port).values(), *snapshot.of(Net).values())
    return frozenset(port.key for port in ports if up(port) is not None)


RULES = (
    Rule("nic-errors", Node, (), nics, any_logged("nic", "module")),
    Rule("nic-optics", Node, (), modules, any_logged("module")),
    Rule("nic-port-flapping", Node, (), flaps, any_logged("link down")),
    Rule("nic-port-flapping", Node, (), rises, rose_again),
    Rule("nic-port-down", Node, (), stays_down, any_logged("link down")),
)
