"""Error counters of NIC ports: errors of the link, flapping, and losses in the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ...facts.machine import Net, Port
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.counter_windows import HOUR, Limit, Rise, far_above, latest_counter, too_many
from ..core.rule import Rule
from ..core.wording import location
from .port_downs import downs_of
from .port_state import down
from .ports import AnyPort, adapter_name, cohort, function_of, network_of, shares_rdma_port


class _Row(Struct, frozen=True):
    """One counter: the finding code, its name in messages, its limit, and the value at which it stops counting."""

    code: str
    word: str
    limit: Limit
    full: float | None = None


# A bit error rate of 1e-12, the limit of the InfiniBand Architecture Specification, gives 120 symbol errors an hour
# (Oracle, Sun Datacenter InfiniBand Switch 72, "Determine Which Links Are Experiencing Significant Errors";
# NVIDIA/NVSentinel, NIC health monitor: symbol_error above 120/hour). infiniband-diags reports at least 10
# (ibqueryerrors, error_thresholds). Each such error loses at most one packet, so errors of packets have the same limit.
_SIGNAL = Limit(fewest=10, per_hour=120, outlier=100)
# NVSentinel: link_error_recovery above 5 a minute, local_link_integrity_errors and excessive_buffer_overrun_errors
# above 0. UFM has an event at 1 recovery. Two are reported: training after a restart of the switch can cause one.
_RETRAINED = Limit(fewest=5, per_hour=5, outlier=20)
_NEVER = Limit(fewest=2, per_hour=1, outlier=5)
# Network devices also count packets of wrong length or for unknown protocols as errors: one in a second.
_DEVICE = Limit(fewest=100, per_hour=HOUR, outlier=1000)
# As in the kernel's log (nic_events.py): three in an hour, six in a day. A flap changes the carrier twice.
_DOWNS = Limit(fewest=3, per_hour=3 - 0.5, outlier=6)
_CARRIER = Limit(fewest=6, per_hour=6 - 0.5, outlier=12)
# Losses of a busy network. NVSentinel: local_ack_timeout_err above 1 a second; UFM: port_xmit_discards above 200.
_LOSSES = Limit(fewest=200, per_hour=HOUR)
_DROPS = Limit(fewest=1000, per_hour=10 * HOUR)

_ERRORS, _FLAPPING, _BUSY = "nic-errors", "nic-port-flapping", "nic-congestion"
# Fields of InfiniBand's PortCounters have 4, 8 or 16 bits and stay at their maximum (IBTA specification 1, 16.1.3.5).
_ROWS: Mapping[str, _Row] = {
    "symbol_error": _Row(_ERRORS, "symbol errors", _SIGNAL, 0xFFFF),
    "port_rcv_errors": _Row(_ERRORS, "receive errors", _SIGNAL, 0xFFFF),
    "port_rcv_remote_physical_errors": _Row(
        _ERRORS, "packets that another link of the fabric marked as bad", _SIGNAL, 0xFFFF
    ),
    "link_error_recovery": _Row(_ERRORS, "link recoveries", _RETRAINED, 0xFF),
    "local_link_integrity_errors": _Row(_ERRORS, "link integrity errors", _NEVER, 0xF),
    "excessive_buffer_overrun_errors": _Row(_ERRORS, "buffer overruns", _NEVER, 0xF),
    "rx_icrc_encapsulated": _Row(_ERRORS, "packets with a wrong checksum (ICRC)", _SIGNAL),
    "rx_crc_errors": _Row(_ERRORS, "frames with a wrong checksum (CRC)", _SIGNAL),
    "rx_errors": _Row(_ERRORS, "receive errors of the network device", _DEVICE),
    "tx_errors": _Row(_ERRORS, "transmit errors of the network device", _DEVICE),
    "link_downed": _Row(_FLAPPING, "times down", _DOWNS, 0xFF),
    "carrier_changes": _Row(_FLAPPING, "changes of the carrier", _CARRIER),
    "port_xmit_discards": _Row(_BUSY, "discarded packets", _LOSSES, 0xFFFF),
    "packet_seq_err": _Row(_BUSY, "packets that the receiver missed (NAK)", _LOSSES),
    "out_of_sequence": _Row(_BUSY, "packets out of sequence", _LOSSES),
    "local_ack_timeout_err": _Row(_BUSY, "packets without an answer in time", _LOSSES),
    "rnr_nak_retry_err": _Row(_BUSY, "packets for which the receiver was not ready", _LOSSES),
    "out_of_buffer": _Row(_BUSY, "packets without a receive buffer", _DROPS),
    "rx_drops": _Row(_BUSY, "dropped packets", _DROPS),
}
_ROWS_OF = {
    code: [(name, row) for name, row in _ROWS.items() if row.code == code] for code in (_ERRORS, _FLAPPING, _BUSY)
}
_SEVERITY: Mapping[str, Severity] = {_ERRORS: "warning", _FLAPPING: "warning", _BUSY: "info"}
_CAUSES = {
    _ERRORS: "the signal of the link: a dirty or loose cable, a transceiver, or the port at the other end",
    _FLAPPING: "the cable, a transceiver, or the port at the other end",
    _BUSY: "the network or the receivers are busy or lose packets; this node has no fault",
}


def counts_errors(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select ports of hardware with an error counter. The RDMA port reports for its network device."""
    function = function_of(snapshot, port)
    if (
        function is None
        or function.physfn
        or function.lost
        or (isinstance(port, Net) and shares_rdma_port(snapshot, port))
    ):
        return False
    return any(one.quantity in _ROWS for about in _abouts(snapshot, port) for one in snapshot.observed.get(about, ()))


def _evaluate(snapshot: Snapshot, port: AnyPort, code: str) -> Iterator[Finding | NotChecked]:
    """One finding with all counters of the code that rose too much, and a NotChecked for each full counter."""
    found: list[tuple[str, Rise]] = []
    for about in _abouts(snapshot, port):
        for quantity, row in _ROWS_OF[code]:
            now = latest_counter(snapshot, about, quantity)
            if now is None or not now.value:
                continue
            risen = _risen(snapshot, port, now, row)
            if risen:
                found.append(risen)
            elif now.value == row.full:
                yield _full(port, now)
    if found and not (code == _FLAPPING and _is_reported(snapshot, port)):
        yield _finding(snapshot, port, code, found)


def _risen(snapshot: Snapshot, port: AnyPort, now: Observation, row: _Row) -> tuple[str, Rise] | None:
    """The increase as text and the window, if it is above the limit or far above equal ports."""
    if now.value == row.full and _is_unchanged(snapshot, now):
        return None
    word = row.word if now.about == port.key else f"{row.word} ({now.about})"
    rise = too_many(snapshot, now, row.limit)
    if rise:
        return f"{rise.new:,.0f} {word} {rise.span}", rise
    if now.value < row.limit.outlier:
        return None
    about = [other for one in cohort(snapshot, port) for other in _abouts(snapshot, one)]
    equal = [one for other in about if (one := latest_counter(snapshot, other, now.quantity))]
    apart = far_above(snapshot, now, equal, row.limit)
    if apart is None:
        return None
    rise, median = apart
    return f"{rise.new:,.0f} {word} {rise.span}; equal ports have {median:.3g}", rise


def _is_unchanged(snapshot: Snapshot, now: Observation) -> bool:
    """Whether no earlier reading is lower: the counter may have been full for long."""
    return all(one.value >= now.value for one in snapshot.earlier.get((now.about, now.quantity), ()))


def _full(port: AnyPort, now: Observation) -> NotChecked:
    return NotChecked(
        what=f"{'Port' if isinstance(port, Port) else 'Net'}.{now.quantity}",
        subject=port.key,
        reason=Reason.UNREADABLE,
        path=now.evidence.source,
        detail=f"the counter is full at {now.value:,.0f} and does not count new errors",
        how="reset the counter: sudo perfquery -R",
    )


def _finding(snapshot: Snapshot, port: AnyPort, code: str, found: list[tuple[str, Rise]]) -> Finding:
    function, (_, first) = function_of(snapshot, port), found[0]
    return Finding(
        code=code,
        severity=_SEVERITY[code],
        confidence="likely",
        subject=port.key,
        subject_name=adapter_name(snapshot, port),
        message=f"port {port.key}: {'; '.join(text for text, _ in found)}",
        observed=first.new,
        unit="count",
        cause=_CAUSES[code],
        location=location(function) if function else {},
        evidence=tuple(one for _, rise in found for one in rise.evidence),
    )


def _is_reported(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether the port is down now, or the kernel's log has its flaps (nic_events.py)."""
    if any(one.severity != "info" for one in down(snapshot, port)):
        return True
    logged = downs_of(snapshot).get(port.key, ())
    return any((one.recent or 1) >= _DOWNS.fewest or (one.bursts or 1) >= _DOWNS.outlier for one in logged)


def _abouts(snapshot: Snapshot, port: AnyPort) -> tuple[str, ...]:
    """The subjects of the port's counters: the port and its network device."""
    network = network_of(snapshot, port) if isinstance(port, Port) else None
    return (port.key, network.key) if network else (port.key,)


def _rule(code: str, kind: type[Port] | type[Net]) -> Rule:
    """The rule for the counters of one code, for RDMA ports or network devices."""

    def evaluate(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding | NotChecked]:
        return _evaluate(snapshot, port, code)

    return Rule(code, kind, (), evaluate, counts_errors)


RULES = tuple(_rule(code, kind) for code in _SEVERITY for kind in (Port, Net))
