"""Ports that wait for the network: it is busy, and nothing is broken. Of counters that were read twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.machine import Port
from ...facts.records import Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from .ports import adapter_name

# PortXmitWait counts ticks in which data was there and none was sent. A tick is the time of one byte on a lane or a
# multiple of it (NVIDIA ibdiagnet user manual, congestion assessment on InfiniBand links): the least is counted here.
_WAITED = 0.1  # of the time; a job that loses more than a tenth of a link notices (see the grades of findings)
# A receiver that is told of congestion by each packet of one flow answers it every 50 microseconds (Zhu et al.,
# Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, 3.1): so many are a flow that is held all the time.
_NOTICES = 1 / 50e-6
_SHORTEST = 5.0  # seconds between two readings


def counted(snapshot: Snapshot, port: Port) -> bool:
    """Where a counter of this kind was read before."""
    return any((port.key, quantity) in snapshot.earlier for quantity in ("port_xmit_wait", "rp_cnp_handled"))


def busy(snapshot: Snapshot, port: Port) -> Iterator[Finding]:
    """A port that waited, or was told to send less, for much of the time since the last reading."""
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
        text = f"was told {rate:.0f} times a second of congestion (CNP) in the last {now.at - before.at:.0f} s"
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
    """The last reading before, the one now, and by how much it rose in a second; None where it was counted anew."""
    seen = [one for one in snapshot.observed.get(port.key, ()) if one.quantity == quantity]
    now = max(seen, key=lambda one: one.at, default=None)
    earlier = [one for one in snapshot.earlier.get((port.key, quantity), ()) if now and one.at <= now.at - _SHORTEST]
    if now is None or not earlier or earlier[-1].value > now.value:
        return None
    return earlier[-1], now, (now.value - earlier[-1].value) / (now.at - earlier[-1].at)


def _lanes(port: Port) -> int:
    """ "4X NDR": bytes of a tick. One where nobody says how many lanes there are."""
    found = re.match(r"([0-9]{1,2})X", port.lanes or "")
    return int(found[1]) if found else 1


RULES = (Rule("nic-congestion", Port, ("device",), busy, counted),)
