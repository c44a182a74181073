"""Rates of iperf3 and iperf 2 between this machine and another, and the JSON of iperf3: https://software.es.net/iperf/,
https://sourceforge.net/projects/iperf2 (src/ReportOutputs.c).

The output has IP addresses and no device. The ends of the flow are the host and the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Record
from ....models.facts.units import from_bits, prefixed
from ..core.json_values import member, number, objects
from ..core.part import Part
from ..core.read_tool import read_rows, read_tool
from ..core.tables import Case, Line, Tool
from ..lines.json_text import decoded, whole_characters

_JSON = r'\{\s{0,20}"start":\s{0,20}\{\s{0,20}"connected":'
_STREAM = r"\[[ ]{0,4}(?:[0-9]{1,4}|SUM)\]"
BEGIN = (
    rf"^[ \t]*(?:{_JSON}|Connecting to host [\w.:%-]{{1,80}}, port [0-9]|Accepted connection from |"
    r"(?:-{20,}[ \t]*\n)?(?:Server listening on (?:(?:TCP|UDP) port )?[0-9]"
    rf"|Client connecting to [\w.:%-]{{1,80}}, (?:TCP|UDP) port [0-9]|{_STREAM} local \S{{2,60}} port [0-9])|"
    r"(?:[|][ \t]*)?\[ ID\](?:\[Role\])?[ \t|]+Interval[ \t|]+Transfer[ \t|]+(?:Bitrate|Bandwidth)|"
    rf"{_STREAM}(?:\[[TR]X-[CS]\])?[ \t]{{1,4}}[0-9.]{{3,9}}-[ ]?[0-9.]{{3,9}}[ \t]{{1,4}}sec[ \t])"
)
_DOCUMENT = re.compile(rf"^[ \t]*{_JSON}", re.MULTILINE)
_LOCAL = r"(?<![\w.])(?:127\.[0-9.]{5,11}|::1|localhost)\b"
_LOOPBACK = "both ends are this machine, so no bytes went over the network"
_LIMITED = "the options of the run limit its rate"
_HOW = "iperf3 -c HOST -P 8 between two machines, without -b; for UDP with -b 0"
_KEEP = "wait for the end of the test and keep its whole output"
_WHAT, _HOST, _NETWORK = "rate of the network", "host", "network"
_RATE = r"[0-9.]{1,12}\s+[KMGT]?Bytes\s+(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,6})?)\s+(?P<unit>[KMGT]?)bits/sec"
_SENDS, _RECEIVES = {"from": _HOST, "to": _NETWORK}, {"from": _NETWORK, "to": _HOST}


def _begins(text: str, **sets: str) -> tuple[Line, Line]:
    """The line that begins a run. It names the other end, which can be this machine."""
    return (
        Line(rf"{text}.*{_LOCAL}.*", forgets=("*",), sets={**sets, "local": "yes"}),
        Line(rf"{text}.*", forgets=("*",), sets=sets),
    )


def _invalid(why: str, **when: str) -> Case:
    """A run that cannot show the rate of the network."""
    return Case(when=when, refused=why, how=_HOW, what=_WHAT, subject="host-network")


def _lacks(why: str, **when: str) -> Case:
    return Case(when=when, refused=why, how=_KEEP, what="Observation", reason=Reason.UNREADABLE)


def _sums(ends: tuple[str, str], alone: str, both: str = "", turned: bool = False, **when: str) -> tuple[Case, ...]:
    """The best rate of a run first: the sum of all streams, as the receiver counts it. `alone`: numbers of streams that
    have no others beside them. `turned`: if this end sends, the bytes go the other way.
    """
    sent = ends[::-1] if turned else ends
    lacking = "streams of an iperf test without their sum"
    return (
        Case(ends, {**when, "stream": "SUM", "whose": "receiver|"}, op="{op}", both=both),
        Case(sent, {**when, "stream": "SUM"}, op="{op}", both=both),
        _lacks(lacking, **when, stream=f"(?!(?:{alone})$)[0-9]{{1,4}}"),
        Case(ends, {**when, "whose": "receiver|"}, op="{op}", both=both),
        Case(sent, when, op="{op}", both=both),
    )


_TOOL = Tool(
    lines=(
        *_begins("Connecting to host", **_SENDS),
        *_begins("Accepted connection from", **_RECEIVES, side="server"),
        *_begins(r"Client connecting to .*, UDP port", **_SENDS, op="udp", limited="yes", program="2"),
        *_begins(r"Client connecting to .*, TCP port", **_SENDS, program="2"),
        *_begins(r"Server listening on (?:TCP|UDP) port", **_RECEIVES, program="2"),
        Line(rf"\[.*\] local .* connected with {_LOCAL}.*", sets={"local": "yes"}),
        Line("Reverse mode.*", sets=_RECEIVES),
        Line(r".*\bLost/Total Datagrams\b.*", sets={"op": "udp"}),
    ),
    rows=(
        r"\[[ ]{0,4}(?P<stream>[0-9]{1,4}|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])?\s+[0-9.]{1,12}-[0-9.]{1,12}\s+sec\s+"
        rf"{_RATE}\b.*?(?P<whose>sender|receiver)",
        # iperf 2 has no word after the numbers of the whole test. They begin at 0, as those of the first second. Its
        # times have one decimal place or four, those of iperf3 have two.
        rf"\[[ ]{{0,4}}(?P<stream>[0-9]{{1,4}}|SUM)\]\s+0\.0(?:000)?-\s?[0-9]{{1,6}}\.[0-9](?:[0-9]{{3}})?\s+sec"
        rf"\s+{_RATE}(?P<whose>)",
    ),
    cases=(
        Case(when={"rate": r"0+(?:\.0+)?"}),  # a server prints the rate of the other end as 0
        _invalid(_LOOPBACK, local="yes"),
        # Without -b, iperf3 sends 1 Mbit/s over UDP (1 << 20 bits).
        _invalid(_LIMITED, op="udp", rate=r"1\.0[3-6]\d*", unit="M"),
        _invalid(_LIMITED, limited="yes"),
        *_sums((_HOST, _NETWORK), "[3-8]", "each", role="TX"),
        *_sums((_NETWORK, _HOST), "[3-8]", "each", role="RX"),
        *_sums((_NETWORK, _HOST), "[3-5]", turned=True, side="server"),  # it sends to a client with --reverse
        # The first number of a socket is 3 to 5. iperf 2 counts from 1 or 3, and its server from 4.
        *_sums(("{from}", "{to}"), "[134]", program="2"),
        *_sums(("{from}", "{to}"), "[3-5]"),
    ),
    units=prefixed("", from_bits(1)),
    start={"op": "tcp"},
    needs=("from",),
    lacks="the first lines of the test are missing: they say which end sends",
    one_of="role",
    no_row=_lacks("an iperf test without the sums at its end"),
)


def read(part: Part) -> Iterator[Record]:
    """The received rate of each test, or the sent rate if the receiver's number is missing."""
    for first, document in part.matches(_DOCUMENT):
        yield from _read_json(part, part.where(first), document.start())
    yield from read_tool(part, _TOOL)


def _read_json(part: Part, place: str, start: int) -> Iterator[Record]:
    """The sums of a test of iperf3 as a row of the tables."""
    try:
        run = decoded(whole_characters(part.text), part.text.index("{", start))[0]
    except ValueError:
        run = {"error": "truncated or invalid JSON"}
    sums = (number(member(run, f"end.{name}.bits_per_second"), 1e18) for name in ("sum_received", "sum_sent", "sum"))
    rate = next((one for one in sums if one), None)
    if rate is None:
        why = str(member(run, "error") or "no rate in it")[:200]
        yield part.gap(place, why, reason=Reason.UNREADABLE, how=_KEEP)
        return
    values = {**(_RECEIVES if member(run, "start.test_start.reverse") else _SENDS), "stream": "SUM", "rate": repr(rate)}
    if member(run, "start.test_start.protocol") == "UDP":
        values["op"] = "udp"
    if number(member(run, "start.test_start.target_bitrate"), 1e18):
        values["limited"] = "yes"
    if any(re.search(_LOCAL, str(one.get("remote_host"))) for one in objects(member(run, "start.connected"))):
        values["local"] = "yes"
    yield from read_rows(part, _TOOL, [("", values, Evidence(place, f"bits_per_second {rate:g}"))])
