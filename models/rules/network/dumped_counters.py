"""Error counters of a port in a dump that shows neither its PCI function nor the time since they were reset.

The traffic in the same output is the measure: an error rate per received bit, compared with the largest rate that
Ethernet (IEEE 802.3) and InfiniBand (Architecture Specification) allow for a link, 1e-12. Without the traffic, the
thresholds of ibqueryerrors apply (infiniband-diags, etc/error_thresholds): what it prints is worth a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ...catalog import NOT_ENOUGH_EVIDENCE
from ...facts.machine import Net, Port
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.counter_windows import latest_counter
from ..core.rule import Rule
from ..core.wording import titled
from .ports import AnyPort, function_of

_WORST = 1e-12  # errors per bit
_FEWEST = 10  # errors: as port_counters.py
_FRAME = 1500 * 8  # bits of a full Ethernet frame, if only packets are counted
_MINUTES = "minutes_counted"  # mlxlink: the time since its counters were reset
_PER_HOUR = 120  # errors: as port_counters.py
_SHARE = 1e-4  # receive errors per full frame; a device also counts frames of wrong length or unknown protocols
_MANY = 100  # errors in an unknown time; fewer can be those of one restart of a switch


class _Row(Struct, frozen=True):
    """A counter: its name in messages, and how many are too many if neither traffic nor time is known."""

    word: str
    most: float = 10  # error_thresholds


_ERRORS: Mapping[str, _Row] = {
    # Ethernet has no such threshold, and these counters run since the driver was loaded.
    "rx_crc_errors": _Row("frames with a wrong checksum (CRC)", 100),
    "rx_symbol_errors": _Row("symbol errors", 100),
    "symbol_error": _Row("symbol errors"),
    "port_rcv_errors": _Row("receive errors"),
    "link_error_recovery": _Row("link recoveries"),
    "local_link_integrity_errors": _Row("link integrity errors"),
    "excessive_buffer_overrun_errors": _Row("buffer overruns"),
    "port_rcv_remote_physical_errors": _Row("packets that another link of the fabric marked as bad", 100),
    "effective_errors": _Row("errors that error correction did not repair"),
}
_OF_BITS = ("rx_crc_errors", "rx_symbol_errors", "symbol_error", "port_rcv_errors", "local_link_integrity_errors")
_DEVICE: Mapping[str, _Row] = {"rx_errors": _Row("receive errors of the network device", 1000)}
_DOWNS: Mapping[str, _Row] = {"link_downed": _Row("times down")}
_LOSSES: Mapping[str, _Row] = {
    "port_xmit_discards": _Row("discarded packets", 200),
    "packet_seq_err": _Row("packets that the receiver missed (NAK)", 200),
    "out_of_sequence": _Row("packets out of sequence", 200),
    "local_ack_timeout_err": _Row("packets without an answer in time", 200),
    "rnr_nak_retry_err": _Row("packets for which the receiver was not ready", 200),
    "out_of_buffer": _Row("packets without a receive buffer", 1000),
    "rx_pause": _Row("pause frames from the other end", 1000),
    "tx_pause": _Row("pause frames sent: its receive buffers were full", 1000),
}  # as port_counters.py
# Messages without an answer at the rate that NVSentinel calls a fault (one a second), for three hours
_TIMEOUTS, _MOST_TIMEOUTS = "local_ack_timeout_err", 10_000
_LANES = tuple(f"rx_lane{lane}_errors" for lane in range(8))
_SIGNAL = "the signal of the link: a dirty or loose cable, a transceiver, or the port at the other end"


def counts(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select ports of dumps with such a counter and without a function. Software devices have none of them."""
    if snapshot.origin != "dumps" or function_of(snapshot, port) is not None:
        return False
    quantities = {one.quantity for one in snapshot.observed.get(port.key, ())}
    return not quantities.isdisjoint({*_ERRORS, *_DEVICE, *_DOWNS, *_LOSSES})


def _counters(snapshot: Snapshot, port: AnyPort, rows: Mapping[str, _Row]) -> list[Observation]:
    """The counters that are not zero, the highest first."""
    found = [one for name in rows if (one := latest_counter(snapshot, port.key, name)) and one.value]
    return sorted(found, key=lambda one: -one.value / rows[one.quantity].most)


def errors(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding | NotChecked]:
    """The port receives more errors than a link may have."""
    counters = _counters(snapshot, port, _ERRORS)
    if not counters:
        return
    most = counters[0]
    bits, text = _received(snapshot, port)
    hours = _hours(snapshot, port)
    if hours and most.value >= _FEWEST:
        rate = most.value / hours
        if rate > _PER_HOUR:
            yield _finding(snapshot, port, counters, f"in {hours:.3g} hours: {rate:,.0f} in an hour")
    elif bits and most.quantity in _OF_BITS:
        if most.value >= _FEWEST and most.value / bits > _WORST:
            yield _finding(snapshot, port, counters, f"{text}: {most.value / bits:.1g} errors per bit")
    elif most.value > _ERRORS[most.quantity].most:
        since = "since its counters were reset; the time is not known"
        yield _finding(snapshot, port, counters, since, "warning" if most.value >= _MANY else "info")
    else:
        yield _unknown(port, most)


def _unknown(port: AnyPort, most: Observation) -> NotChecked:
    why = f"{most.value:.0f} {_ERRORS[most.quantity].word}, but neither the traffic nor the time is known"
    return NotChecked(
        what=f"{type(port).__name__}.{most.quantity}",
        subject=port.key,
        reason=Reason.OTHER,
        path=most.evidence.source,
        detail=why,
        how="read the counters twice, a minute apart, with all lines: ethtool -S",
    )


def _hours(snapshot: Snapshot, port: AnyPort) -> float | None:
    minutes = latest_counter(snapshot, port.key, _MINUTES)
    return minutes.value / 60 if minutes and minutes.value else None


def _received(snapshot: Snapshot, port: AnyPort) -> tuple[float | None, str]:
    """The received bits, and the traffic as text. None: not known."""
    octets, packets = (latest_counter(snapshot, port.key, name) for name in ("rx_bytes", "rx_packets"))
    if octets and octets.value:
        return octets.value * 8, f"in {octets.value / 1e9:.3g} GB"
    if packets and packets.value:
        return packets.value * _FRAME, f"in {packets.value:.0f} packets"
    return None, ""


def _finding(
    snapshot: Snapshot, port: AnyPort, counters: Sequence[Observation], span: str, severity: Severity = "warning"
) -> Finding:
    lanes = [one for name in _LANES if (one := latest_counter(snapshot, port.key, name)) and one.value]
    worst = max(lanes, key=lambda one: one.value, default=None)
    lane = f"; lane {worst.quantity[7]} has the most, {worst.value:.0f}, before correction" if worst else ""
    texts = ", ".join(f"{one.value:.0f} {_ERRORS[one.quantity].word}" for one in counters)
    return Finding(
        code="nic-errors",
        severity=severity,
        confidence="likely" if severity == "warning" else "possible",
        subject=port.key,
        message=f"{titled(port)} received {texts} {span}{lane}",
        expected=_WORST,
        observed=counters[0].value,
        unit="count",
        cause=_SIGNAL,
        evidence=tuple(dict.fromkeys((*(one.evidence for one in counters), *((worst.evidence,) if worst else ())))),
    )


def downs(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """The link of the port went down often."""
    for one in _counters(snapshot, port, _DOWNS):
        if one.value > _DOWNS[one.quantity].most:
            since = f"in {hours:.3g} hours" if (hours := _hours(snapshot, port)) else "since its counters were reset"
            yield _simple("nic-port-flapping", "warning", port, [one], f"went down {one.value:.0f} times {since}")


def losses(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """The network lost packets of the port."""
    found = [one for one in _counters(snapshot, port, _LOSSES) if one.value >= _LOSSES[one.quantity].most]
    if found:
        texts = ", ".join(f"{one.value:.0f} {_LOSSES[one.quantity].word}" for one in found)
        yield _simple("nic-congestion", "info", port, found, f"had {texts} since its counters were reset")


def timeouts(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """Very many messages of the port got no answer in time. One reading cannot tell whether they still do."""
    one = latest_counter(snapshot, port.key, _TIMEOUTS)
    if one and one.value >= _MOST_TIMEOUTS and not _hours(snapshot, port):
        yield Finding(
            code=NOT_ENOUGH_EVIDENCE,
            severity="info",
            confidence="possible",
            subject=port.key,
            message=f"{titled(port)} sent {one.value:.0f} messages that got no answer in time, since an unknown time: "
            "the fabric loses packets, or other nodes failed; read the counters twice, a minute apart",
            observed=one.value,
            unit="count",
            cause="a lossy path (PFC, ECN, a bad link), or peers that ended",
            evidence=(one.evidence,),
        )


def device_errors(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding]:
    """A network device receives bad frames all the time."""
    bits, text = _received(snapshot, port)
    for one in _counters(snapshot, port, _DEVICE):
        if bits and one.value >= _DEVICE[one.quantity].most and one.value * _FRAME / bits > _SHARE:
            yield _simple("nic-errors", "warning", port, [one], f"had {one.value:.0f} receive errors {text}")


def _simple(code: str, severity: Severity, port: AnyPort, found: Sequence[Observation], text: str) -> Finding:
    busy = "the network or the receivers are busy or lose packets; this node has no fault"
    return Finding(
        code=code,
        severity=severity,
        confidence="possible",
        subject=port.key,
        message=f"{titled(port)} {text}",
        observed=found[0].value,
        unit="count",
        cause=busy if severity == "info" else "the cable, a transceiver, or the port at the other end",
        evidence=tuple(dict.fromkeys(one.evidence for one in found)),
    )


_JUDGED = (
    ("nic-errors", errors),
    ("nic-errors", device_errors),
    ("nic-port-flapping", downs),
    ("nic-congestion", losses),
    (NOT_ENOUGH_EVIDENCE, timeouts),
)
RULES = tuple(Rule(code, kind, (), judge, counts) for code, judge in _JUDGED for kind in (Net, Port))
