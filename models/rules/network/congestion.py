"""Ports that wait because the network is busy. Nothing is broken. The counters must have been read twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.machine import Port
from ...facts.records import Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from .ports import adapter_name

# PortXmitWait counts ticks in which a port had data and could not send it. A tick is the time of one byte on a lane, or
# a multiple of that time (NVIDIA ibdiagnet user manual, congestion assessment on InfiniBand links). This rule uses the
# shortest tick, so the waiting time is a lower bound.
_WAITED = 0.1  # of the time; a job notices the loss of more than a tenth of a link (see the grades of findings)
# A receiver sends at most one congestion notification per flow every 50 microseconds (Zhu et al., Congestion Control
# for Large-Scale RDMA Deployments, SIGCOMM 2015, 3.1). This rate means one flow that is throttled all the time.
_NOTICES = 1 / 50e-6
_SHORTEST = 5.0  # seconds between two readings


def has_earlier_counter(snapshot: Snapshot, port: Port) -> bool:
    """Select ports with an earlier reading of a congestion counter."""
    return any((port.key, quantity) in snapshot.earlier for quantity in ("port_xmit_wait", "rp_cnp_handled"))


def busy(snapshot: Snapshot, port: Port) -> Iterator[Finding]:
    """A port waited, or received congestion notifications, for much of the time since the last reading."""
    waits, notices = (_rise(snapshot, port, quantity) for quantity in ("port_xmit_wait", "rp_cnp_handled"))
    if waits and port.rate:
        before, now, ticks = waits
        share = min(1.0, ticks * _lanes(port) / port.rate)
        if share > _WAITED:
            text = f"had data and could not send it for at least {share:.0%} of the last {now.at - before.at:.0f} s"
            yield _finding(snapshot, port, text, (_WAITED, share, "ratio"), (before, now))
            return
    if notices and notices[2] > _NOTICES:
        before, now, rate = notices
        text = f"got {rate:.0f} congestion notifications (CNP) a second in the last {now.at - before.at:.0f} s"
        yield _finding(snapshot, port, text, (_NOTICES, rate, "per_second"), (before, now))


def _finding(
    snapshot: Snapshot, port: Port, text: str, numbers: tuple[float, float, str], seen: tuple[Observation, Observation]
) -> Finding:
    expected, observed, unit = numbers
    return Finding(
        code="nic-congestion",
        severity="info",
        subject=port.key,
        subject_name=adapter_name(snapshot, port),
        message=f"port {port.key} {text}",
        expected=expected,
        observed=observed,
        unit=unit,
        cause="the network or the receivers are busy; nothing is broken on this node",
        evidence=tuple(one.evidence for one in seen),
    )


def _rise(snapshot: Snapshot, port: Port, quantity: str) -> tuple[Observation, Observation, float] | None:
    """The previous and the current reading of a counter, and its increase per second.

    None: a reading is missing, or the counter was reset.
    """
    seen = [one for one in snapshot.observed.get(port.key, ()) if one.quantity == quantity]
    now = max(seen, key=lambda one: one.at, default=None)
    earlier = [one for one in snapshot.earlier.get((port.key, quantity), ()) if now and one.at <= now.at - _SHORTEST]
    if now is None or not earlier or earlier[-1].value > now.value:
        return None
    return earlier[-1], now, (now.value - earlier[-1].value) / (now.at - earlier[-1].at)


def _lanes(port: Port) -> int:
    """The number of lanes in "4X NDR", which is the number of bytes in a tick. 1 if it is not known."""
    found = re.match(r"([0-9]{1,2})X", port.lanes or "")
    return int(found[1]) if found else 1


RULES = (Rule("nic-congestion", Port, ("device",), busy, has_earlier_counter),)
