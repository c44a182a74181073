"""Kernel log events of NICs, memory and processors, if no counter shows the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...facts.machine import Event, Net, Node, Package, Pci, Port
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding, Severity
from ..core.log_history import event_evidence, events, is_history, since, times, total_count
from ..core.rule import Rule
from ..core.wording import function_name, location
from ..gpu.pcie_events import any_logged
from .nic import down
from .port_downs import downs_of, is_last, readies_of, ups_of, while_running
from .ports import real, up

_FLAPS = 3  # "link down" events in an hour: a restart of a switch or of a driver causes one or two
# Bursts of "link down" events in a day: twice _FLAPS, one in four hours. Azure's node check fails if a port goes down
# twice within six hours (Azure/azurehpc-health-checks, azure_ib_link_flapping.nhc).
_SLOW_FLAPS = 2 * _FLAPS
_RISES = 3  # "link up" events in an hour without "link down"; one or two are a start of the driver or of a bond
_FUNCTION = re.compile(r"^\w+:\d+:\(pid \d+\): ")  # of mlx5_core
_EXCERPT = 2  # the same in an excerpt whose port comes up as often
_CABLE = "the cable, a transceiver, or the port at the other end"
_CORRECTED = 50  # in an hour; rasdaemon takes a memory page out of use at 50 a day (PAGE_CE_THRESHOLD)
_BURST = 10  # fewer errors show no rate
_MINUTE, _HOUR = 60.0, 3600.0
_HOT = 3  # entries in an hour
_OFTEN = 1000  # events since boot: the kernel logs one line in five minutes for any number of them
_EVENTS = re.compile(r"\(total events = ([0-9]{1,12})\)")  # therm_throt.c


def _grouped(found: list[Event]) -> Mapping[str, list[Event]]:
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(found, key=lambda one: one.at or 0.0):
        groups[event.subject or "node"].append(event)
    return groups


def nics(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The driver or firmware of a NIC logged a fault of the NIC or of the module in its cage."""
    for address, found in _grouped([one for one in events(snapshot, "nic", "module") if not _is_hot(one)]).items():
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
    for address, found in _grouped([one for one in events(snapshot, "module") if _is_hot(one)]).items():
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
    """A port of any kind went down several times within an hour or a day. nic.py reports ports that are down now."""
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


def memory(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Errors of the host's memory in the log, if no counter shows them; those of a text can be of another time."""
    counted = [one for one in snapshot.observations if one.quantity in ("ce_count", "ue_count")]
    if any(snapshot.origin != "dumps" or one.value for one in counted):
        return
    for key, found in _grouped(events(snapshot, "edac")).items():
        bad = [one for one in found if one.fatal]
        last = max(bad or found, key=lambda one: one.recent or 1)
        few = not bad and not _is_storm(snapshot, last)
        if few and snapshot.origin != "dumps":
            continue
        severity: Severity = "info" if few or is_history(snapshot, last) else "critical" if bad else "warning"
        kind = "uncorrected" if bad else "corrected"
        modules = _modules(bad or found)
        yield Finding(
            code="host-memory-errors",
            kind="event" if bad else "state",
            severity=severity,
            subject=key,
            message=f"the kernel logged {total_count(bad or found)} {kind} memory errors of {key}{modules}",
            case=kind,
            fact=f"had {total_count(bad or found)} {kind} memory errors",
            since=since(last),
            expected=0,
            observed=total_count(bad or found),
            unit="count",
            cause="a memory module; the log names its place",
            evidence=tuple(event_evidence(one) for one in found),
        )


def _is_storm(snapshot: Snapshot, event: Event) -> bool:
    """Whether the errors of a module come at a rate that needs a replacement. An excerpt can be shorter than an hour.

    Of a text without times, the number of errors decides.
    """
    recent = event.recent if event.recent is not None else event.count or 1
    if event.first is None or event.until is None:
        return recent >= _CORRECTED
    span = max(event.until - event.first, _MINUTE)
    return recent >= _CORRECTED or (recent >= _BURST and span < _HOUR and recent * _HOUR >= _CORRECTED * span)


def _modules(found: Sequence[Event]) -> str:
    """The modules that the lines name, the one with the most errors first."""
    names = dict.fromkeys(one.name for one in sorted(found, key=lambda one: -(one.count or 1)) if one.name)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" ({', '.join([str(name) for name in names][:3])}{more})" if names else ""


def heat(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Processors slowed down because of heat, if the counters were not read (host_counters.py)."""
    if any(one.quantity == "throttle_time" for one in snapshot.observations):
        return
    packages: dict[str, list[Event]] = defaultdict(list)
    for event in events(snapshot, "throttle"):
        packages[_package_of(snapshot, event)].append(event)
    for key, found in packages.items():
        most = max(found, key=lambda one: (_total(one), one.recent or 1))
        few = (most.recent or 1) < _HOT and _total(most) < _OFTEN
        total = f" ({_total(most)} times since boot, by the line)" if _total(most) else ""
        yield Finding(
            code="cpu-throttled",
            severity="info" if is_history(snapshot, most) or few else "warning",
            subject=key,
            message=f"the processors of {key} slowed down because of heat{times([most])}{total}",
            since=since(most),
            observed=max(most.count or 1, _total(most)),
            unit="count",
            cause="fans, filters, a heat sink, or the room's temperature",
            evidence=(event_evidence(most),),
        )


def _total(event: Event) -> int:
    """The number of such events since boot that the line gives. 0: it gives none."""
    found = _EVENTS.search(event.text or "")
    return int(found[1]) if found else 0


def _package_of(snapshot: Snapshot, event: Event) -> str:
    packages = snapshot.of(Package).values()
    return next((p.key for p in packages if event.subject in {f"cpu{number}" for number in p.cpus or ()}), "node")


RULES = (
    Rule("nic-errors", Node, (), nics, any_logged("nic", "module")),
    Rule("nic-optics", Node, (), modules, any_logged("module")),
    Rule("nic-port-flapping", Node, (), flaps, any_logged("link down")),
    Rule("nic-port-flapping", Node, (), rises, rose_again),
    Rule("nic-port-down", Node, (), stays_down, any_logged("link down")),
    Rule("host-memory-errors", Node, (), memory, any_logged("edac")),
    Rule("cpu-throttled", Node, (), heat, any_logged("throttle")),
)
