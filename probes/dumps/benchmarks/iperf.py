"""Rates of iperf3 between this machine and another, text and JSON: https://software.es.net/iperf/.

The output has IP addresses and no device. The ends of the flow are the host and the network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import from_bits
from ..core.json_values import list_of, object_of
from ..core.part import Part
from ..lines.markup import cells_of

_JSON = r'\{\s{0,20}"start":\s{0,20}\{\s{0,20}"connected":'
BEGIN = (
    rf"^[ \t]*(?:{_JSON}|Connecting to host [\w.:%-]{{1,80}}, port [0-9]|"
    r"(?:-{20,}[ \t]*\n)?Server listening on [0-9]|Accepted connection from |"
    r"[|]?[ \t]*\[ ID\][ \t|]+Interval[ \t|]+Transfer[ \t|]+Bitrate)"
)
_DOCUMENT = re.compile(rf"^[ \t]*{_JSON}", re.MULTILINE)
_BEGUN = re.compile(r"\s*(?:(?P<client>Connecting to host)|(?P<server>Accepted connection from))\b")
_ROW = re.compile(
    r"\s*\[ {0,4}(?P<stream>[0-9]{1,4}|SUM)\]\s+[0-9.]{1,12}-[0-9.]{1,12}\s+sec\s+[0-9.]{1,12}\s+[KMGT]?Bytes\s+"
    r"(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,6})?)\s+(?P<unit>[KMGT]?)bits/sec\b.*?(?P<whose>sender|receiver)\s*"
)
_BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LOCAL = re.compile(r"(?<![\w.])(?:127\.[0-9.]{5,11}|::1|localhost)\b")
_LOOPBACK = "both ends are this machine, so no bytes went over the network"
_LIMITED = "the options of the run limit its rate"
_UDP_DEFAULT, _NEAR = from_bits(1 << 20), 0.02  # without -b, iperf3 sends 1 Mbit/s over UDP
_FIRST = {"3", "4", "5"}  # the numbers of the only stream: those of its socket
_HOST, _NETWORK = "host", "network"


@dataclass(slots=True)
class _Test:
    """One run: its first line, and the sums at its end."""

    where: Evidence | None = None
    sends: bool = True
    local: bool = False  # the other end is this machine
    op: str = "tcp"
    # by role of the line, and whether it sums all streams
    sums: dict[tuple[str, bool], tuple[float, Evidence]] = field(default_factory=dict)
    streams: set[str] = field(default_factory=set)


def read(part: Part) -> Iterator[Record]:
    """The received rate of each test, or the sent rate if the receiver's number is missing."""
    for first, document in part.matches(_DOCUMENT):
        yield from _read_json(part, part.where(first), document.start())
    test = _Test()
    for number, line in part.lines():
        if begun := _BEGUN.match(line):
            yield from _test_records(part, test)
            test = _Test(part.cite(number, line), bool(begun["client"]), bool(_LOCAL.search(line)))
        elif line.lstrip().startswith("Reverse mode"):
            test.sends = not test.sends
        elif re.search(r"\bLost/Total Datagrams\b", line):
            test.op = "udp"
        elif row := _ROW.fullmatch(cells_of(line)):
            rate = from_bits(float(row["rate"]) * _BITS[row["unit"]])
            test.streams.add(row["stream"])
            test.sums[row["whose"], row["stream"] == "SUM"] = rate, part.cite(number, line)
    yield from _test_records(part, test)


def _test_records(part: Part, test: _Test) -> Iterator[Record]:
    for role in (("receiver", True), ("sender", True), ("receiver", False), ("sender", False)):
        if role in test.sums:
            rate, where = test.sums[role]
            if not role[1] and (len(test.streams) > 1 or not test.streams <= _FIRST):
                yield _no_rate(where.source, "streams of an iperf3 test without their sum")
                return
            limited = test.op == "udp" and abs(rate / _UDP_DEFAULT - 1) < _NEAR
            if test.local or limited:
                yield _invalid(where.source, _LOOPBACK if test.local else _LIMITED)
            else:
                yield from _rate(part, test.op, test.sends, rate, where)
            return
    if test.where:
        yield _no_rate(test.where.source, "an iperf3 test without the sums at its end")


def _rate(part: Part, op: str, sends: bool, rate: float, where: Evidence) -> Iterator[Observation]:
    if rate > 0:
        ends = (_HOST, _NETWORK) if sends else (_NETWORK, _HOST)
        yield part.rate(Flow(op, ends), rate, where)


def _read_json(part: Part, place: str, start: int) -> Iterator[Record]:
    try:
        members: dict[str, Any] = json.JSONDecoder().raw_decode(part.text, part.text.index("{", start))[0]
    except (ValueError, RecursionError):
        yield _no_rate(place, "truncated or invalid JSON")
        return
    begun, end = object_of(object_of(members.get("start")).get("test_start")), object_of(members.get("end"))
    sums = [object_of(end.get(name)).get("bits_per_second") for name in ("sum_received", "sum_sent", "sum")]
    rate = next((float(one) for one in sums if isinstance(one, int | float) and 0 < one < 1e18), None)
    if rate is None:
        yield _no_rate(place, str(members.get("error") or "no rate in it")[:200])
        return
    op = "udp" if begun.get("protocol") == "UDP" else "tcp"
    peers = [object_of(one).get("remote_host") for one in list_of(object_of(members.get("start")).get("connected"))]
    limited = isinstance(begun.get("target_bitrate"), int) and begun["target_bitrate"] > 0
    if limited or any(isinstance(one, str) and _LOCAL.search(one) for one in peers):
        yield _invalid(place, _LIMITED if limited else _LOOPBACK)
        return
    where = Evidence(place, f"bits_per_second {rate:g}")
    yield from _rate(part, op, not begun.get("reverse"), from_bits(rate), where)


def _invalid(where: str, why: str) -> NotChecked:
    """A run that cannot show the rate of the network."""
    return NotChecked(
        what="rate of the network",
        subject="host-network",
        reason=Reason.NOT_MEASURED,
        path=where,
        detail=why,
        how="iperf3 -c HOST -P 8 between two machines, without -b; for UDP with -b 0",
    )


def _no_rate(where: str, why: str) -> NotChecked:
    return NotChecked(
        what="Observation",
        subject="node",
        reason=Reason.UNREADABLE,
        path=where,
        detail=why,
        how="wait for the end of the test and keep its whole output",
    )
