"""Error counters of a port in a dump that shows neither its PCI function nor the time since they were reset.

Then the traffic in the same output is the measure: an error rate per received bit, compared with the largest rate that
Ethernet (IEEE 802.3) and InfiniBand (Architecture Specification) allow for a link, 1e-12.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Net, Port
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.counter_windows import latest_counter
from ..core.rule import Rule
from .ports import AnyPort, function_of

_WORST = 1e-12  # errors per bit
_FEWEST = 10  # errors: as port_counters.py
_FRAME = 1500 * 8  # bits of a full Ethernet frame, if only packets are counted
_ERRORS = {
    "rx_crc_errors": "frames with a wrong checksum (CRC)",
    "symbol_error": "symbol errors",
    "rx_symbol_errors": "symbol errors",
    "port_rcv_errors": "receive errors",
    "local_link_integrity_errors": "link integrity errors",
}
_LANES = tuple(f"rx_lane{lane}_errors" for lane in range(8))


def counts_errors(snapshot: Snapshot, port: AnyPort) -> bool:
    """Select ports of dumps with such a counter and without a function. Software devices have none of them."""
    if snapshot.origin != "dumps" or function_of(snapshot, port) is not None:
        return False
    return any(one.quantity in _ERRORS for one in snapshot.observed.get(port.key, ()))


def too_many(snapshot: Snapshot, port: AnyPort) -> Iterator[Finding | NotChecked]:
    """The port receives more errors than a link may have."""
    counters = [one for name in _ERRORS if (one := latest_counter(snapshot, port.key, name)) and one.value]
    if not counters:
        return
    most = max(counters, key=lambda one: one.value)
    bits, text = _received(snapshot, port)
    if bits is None:
        why = f"{most.value:.0f} {_ERRORS[most.quantity]}, but neither the traffic nor the time is known"
        how = "read the counters twice, a minute apart, with all lines: ethtool -S"
        yield NotChecked(
            what=f"{type(port).__name__}.{most.quantity}",
            subject=port.key,
            reason=Reason.OTHER,
            path=most.evidence.source,
            detail=why,
            how=how,
        )
    elif most.value >= _FEWEST and most.value / bits > _WORST:
        yield _finding(snapshot, port, most, counters, f"{text}: {most.value / bits:.1g} errors per bit")


def _received(snapshot: Snapshot, port: AnyPort) -> tuple[float | None, str]:
    """The received bits, and the traffic as text. None: not known."""
    octets, packets = (latest_counter(snapshot, port.key, name) for name in ("rx_bytes", "rx_packets"))
    if octets and octets.value:
        return octets.value * 8, f"in {octets.value / 1e9:.3g} GB"
    if packets and packets.value:
        return packets.value * _FRAME, f"in {packets.value:.0f} packets"
    return None, ""


def _finding(
    snapshot: Snapshot, port: AnyPort, most: Observation, counters: list[Observation], traffic: str
) -> Finding:
    lanes = [one for name in _LANES if (one := latest_counter(snapshot, port.key, name)) and one.value]
    worst = max(lanes, key=lambda one: one.value, default=None)
    lane = f"; lane {worst.quantity[7]} has the most, {worst.value:.0f}, before correction" if worst else ""
    texts = ", ".join(f"{one.value:.0f} {_ERRORS[one.quantity]}" for one in counters)
    return Finding(
        code="nic-errors",
        severity="warning",
        confidence="likely",
        subject=port.key,
        message=f"port {port.key} received {texts} {traffic}{lane}",
        expected=_WORST,
        observed=most.value,
        unit="count",
        cause="the signal of the link: a dirty or loose cable, a transceiver, or the port at the other end",
        evidence=(*(one.evidence for one in counters), *((worst.evidence,) if worst else ())),
    )


RULES = tuple(Rule("nic-errors", kind, (), too_many, counts_errors) for kind in (Net, Port))
