"""Error counters of ports in one line: ibqueryerrors of infiniband-diags, and `rdma statistic` of iproute2.

ibqueryerrors(8) prints the counters that exceed its thresholds, of all ports of a fabric: adapters and switches. A port
has the name of its node and its number. The older ibcheckerrors (ibcheckerrs.in) has a line for each counter, with the
local identifier of the port. `rdma statistic show link` (rdma-statistic(8)) prints the counters of the
hardware (/sys/class/infiniband/DEVICE/ports/PORT/hw_counters). The reader does not store GUIDs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Port
from ....models.facts.records import Observation, Record
from ..core.fields import FactCollector
from ..core.part import Part

_NAME = r"[\w.-]{1,64}"
# The newer versions add the value in short: "(13.673G)"
_SHORT = r"(?: \([0-9.]{1,12}[KMGTPE]?\))?"
_BRACKETS = rf"(?:\[\w{{4,40}} == [0-9]{{1,20}}{_SHORT}\][ \t]{{0,4}})"
_PORT_LINE = rf"(?:GUID 0x[0-9a-f.]{{1,18}} )?port (?:[0-9]{{1,3}}|ALL):[ \t]{{1,8}}{_BRACKETS}"
BEGIN = (
    rf"^[ \t]*(?:Errors for (?:0x[0-9a-f]{{4,16}} )?\"|{_PORT_LINE}"
    rf"|#warn: counter \w{{4,40}} = [0-9]"
    rf"|(?:link )?{_NAME}/[0-9]{{1,3}} (?:rx_write_requests|rx_read_requests|active_pds|tx_bytes) [0-9])"
)
LINES = True
_NODE = re.compile(r"Errors for (?:(?P<guid>0x[0-9a-f]{4,16}) )?\"(?P<name>[^\"\n]{1,100})\"")
_PORT = re.compile(r"(?:GUID (?P<guid>0x[0-9a-f.]{1,18}) )?port (?P<port>[0-9]{1,3}|ALL): ")
_COUNTER = re.compile(rf"\[(?P<name>\w{{4,40}}) == (?P<value>[0-9]{{1,20}}){_SHORT}\]")
_LINK = re.compile(rf"(?:link )?(?P<device>{_NAME})/(?P<port>[0-9]{{1,3}}) (?P<rest>[a-z]\w{{2,40}} [0-9].*)")
_WARNED = re.compile(
    r"#warn: counter (?P<name>\w{4,40}) = (?P<value>[0-9]{1,20})[ \t]{1,40}\(threshold [0-9]{1,9}\)"
    r"[ \t]{1,8}lid (?P<lid>[0-9]{1,6})(?: port (?P<port>[0-9]{1,3}))?(?![0-9])"
)
_PAIR = re.compile(r"([a-z]\w{2,40}) ([0-9]{1,20})(?![0-9])")
# Names of ibqueryerrors (libibmad, fields.c) of the present and of older versions, and those of /sys
_QUANTITIES = {
    "SymbolErrorCounter": "symbol_error",
    "SymbolErrors": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkRecovers": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "LinkDowned": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "RcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "RcvRemotePhysErrors": "port_rcv_remote_physical_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "XmtDiscards": "port_xmit_discards",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "LinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "ExcBufOverrunErrors": "excessive_buffer_overrun_errors",
}
_HARDWARE = frozenset(
    {
        "out_of_sequence",
        "packet_seq_err",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
        "out_of_buffer",
        "rx_icrc_encapsulated",
    }
)


_UNNAMED = "switch"


def read(part: Part) -> Iterator[Record]:
    """A `Port` and its counters. They never fall, so of several readings the highest counts."""
    found, counted, node = FactCollector(), dict[tuple[str, str], Observation](), _UNNAMED
    guid: str | None = None  # of the node
    for number, line in part.lines():
        if named := _NODE.search(line):
            node, guid = _short(named["name"]), named["guid"]
        elif link := _LINK.search(line):
            key = f"{link['device']}/{int(link['port'])}"
            counters = [(name, value) for name, value in _PAIR.findall(link["rest"]) if name in _HARDWARE]
            _add(part, found, counted, key, counters, number, line)
        elif warned := _WARNED.search(line):
            if (quantity := _QUANTITIES.get(warned["name"])) and warned["port"]:
                key = f"lid{int(warned['lid'])}/{int(warned['port'])}"
                _add(part, found, counted, key, [(quantity, warned["value"])], number, line)
        elif port := _PORT.search(line):
            guid = guid or port["guid"]
            if port["guid"] not in (None, guid):  # the line that names its node is missing
                node, guid = _UNNAMED, port["guid"]
            if port["port"] == "ALL":
                continue
            pairs = ((_QUANTITIES.get(one["name"]), one["value"]) for one in _COUNTER.finditer(line))
            key = f"{node}/{int(port['port'])}"
            _add(part, found, counted, key, [(name, value) for name, value in pairs if name], number, line)
    yield from found.records()
    yield from counted.values()


def _add(
    part: Part,
    found: FactCollector,
    counted: dict[tuple[str, str], Observation],
    key: str,
    counters: list[tuple[str, str]],
    number: int,
    line: str,
) -> None:
    where = part.cite(number, line)
    for quantity, digits in counters:
        found.add(Port, key, where)
        one = Observation(about=key, quantity=quantity, unit="count", value=float(digits), at=part.at, evidence=where)
        known = counted.get((key, quantity))
        if known is None or known.value < one.value:
            counted[key, quantity] = one


def _short(name: str) -> str:
    """The host or the switch in "MF0;leaf3:MQM8700/U1" and "node7 mlx5_3"."""
    switch = re.search(r";([\w.-]{1,64})", name)
    return switch[1] if switch else re.sub(r"[^\w.-]+", "-", name.strip())
