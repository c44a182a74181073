"""Counters of NIC ports: `ethtool -S` of any driver, and `perfquery` of infiniband-diags.

The names of `ethtool -S` belong to the drivers (mlx5: en_stats.c; bnxt: bnxt_ethtool.c; ice, i40e, ixgbe, ena, tg3:
*_ethtool.c). Only counters with a clear meaning are read: bad frames and symbols at the port, corrected errors by lane,
link downs, and the traffic beside them. `ethtool -S` does not name its device; the command or a file name does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ....models.facts.machine import Net, Port
from ....models.facts.records import Fact, Observation, Record
from ..core.fields import FactCollector
from ..core.key_values import begins, entry, number
from ..core.part import Part

_PHY = r"[rt]x_(?:crc_errors|symbol_err|pcs_symbol_err|err_lane_\d|corrected_bits|discards|bytes|packets)_phy"
_ETHTOOL = (
    _PHY,
    "link_down_events(?:_phy)?|lsc_int",
    r"(?:port\.)?rx_crc_errors?(?:\.nic)?",
    "rx_fcs_err(?:_frame)?s|rx_fcs_errors",
    r"[rt]x_(?:pause_(?:frames|ctrl_phy)|prio\d_pause)",
    "rx_fec_(?:corrected|uncorrect(?:able|ed))_(?:blocks|cw)",
)
_PERFQUERY = (
    "(?:PortSelect|CounterSelect|SymbolErrorCounter|LinkErrorRecoveryCounter|LinkDownedCounter|PortRcvErrors)",
    "(?:PortLocalPhysicalErrors|PortRcvRemotePhysicalErrors|PortXmitDiscards|LocalLinkIntegrityErrors|ExcessiveBufferOverrunErrors)",
    "(?:PortXmitData|PortRcvData|PortXmitPkts|PortRcvPkts|PortXmitWait|QP1Dropped|VL15Dropped)",
)
# ibdiagnet, "Port Counters" of a port with errors
_IBDIAGNET = (
    "(?:symbol_error|link_error_recovery|link_downed|link_down)_counter(?:_extended)?",
    "port_rcv_(?:remote_physical_)?errors(?:_extended)?",
)
_COMMAND = r"[^\n]{0,120}\bethtool (?:-S|--statistics) [a-z][\w.-]{1,30}[ \t]*(?:\|[^\n]{0,80})?$"
_HEADING = (
    r"NIC statistics(?: for [\w.-]{1,30})?:[ \t]*$|\# Port(?: extended|RcvErrorDetails)? counters: (?:Lid \d|DR path )"
)
BEGIN = (
    rf"^(?:[ \t]*(?:{_HEADING})|{_COMMAND}|{begins(_ETHTOOL, '[0-9]')}"
    rf"|{begins(_PERFQUERY, '[0-9]|0x')}|{begins(_IBDIAGNET, '[0-9]|0x')})"
)
_NAMED = re.compile(
    r"(?:\bethtool (?:-S|--statistics) (?P<device>[a-z][\w.-]{1,30})\s*(?:\|.{0,80})?$"
    r"|NIC statistics for (?P<other>[\w.-]{1,30}):)"
)
_NEW = re.compile(
    r"NIC statistics:|\# Port(?: extended|RcvErrorDetails)? counters: (?:Lid (?P<lid>\d{1,5}) port (?P<port>\d{1,3}))?"
)
_FILE = re.compile(r"(?:^|/)ethtool_-S_([A-Za-z][\w-]{0,30})$")  # file names of sosreports
_LANE = re.compile(r"rx err lane (\d) phy")
_VALUE = re.compile(r"(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20}(?:,[0-9]{3})*(?:\s.*)?)")
_CHANGES = "lsc int"  # igb, ixgbe: interrupts for a changed link, one for each down and one for each up
_QUANTITIES = {
    "rx crc errors phy": "rx_crc_errors",
    "rx crc errors": "rx_crc_errors",
    "rx crc error": "rx_crc_errors",
    "rx crc errors nic": "rx_crc_errors",
    "port rx crc errors": "rx_crc_errors",
    "rx fcs errors": "rx_crc_errors",
    "rx fcs err frames": "rx_crc_errors",
    "rx symbol err phy": "rx_symbol_errors",
    "rx pcs symbol err phy": "rx_symbol_errors",
    "rx corrected bits phy": "rx_corrected_bits",
    "link down events phy": "link_downed",
    "link down events": "link_downed",
    _CHANGES: "link_downed",
    "rx bytes phy": "rx_bytes",
    "rx packets phy": "rx_packets",
    "rx discards phy": "rx_drops",
    "rx pause frames": "rx_pause",
    "tx pause frames": "tx_pause",
    "rx pause ctrl phy": "rx_pause",
    "tx pause ctrl phy": "tx_pause",
    **{f"{way} prio{number} pause": f"{way}_pause" for way in ("rx", "tx") for number in range(8)},
    "symbolerrorcounter": "symbol_error",
    "linkerrorrecoverycounter": "link_error_recovery",
    "linkdownedcounter": "link_downed",
    "portrcverrors": "port_rcv_errors",
    "portlocalphysicalerrors": "port_rcv_errors",  # perfquery --rcverr: the part of them that the link causes
    "portrcvremotephysicalerrors": "port_rcv_remote_physical_errors",
    "portxmitdiscards": "port_xmit_discards",
    "locallinkintegrityerrors": "local_link_integrity_errors",
    "excessivebufferoverrunerrors": "excessive_buffer_overrun_errors",
    "portrcvdata": "port_rcv_data",
    "symbol error counter": "symbol_error",
    "link error recovery counter": "link_error_recovery",
    "link downed counter": "link_downed",
    "link down counter": "link_downed",
    "port rcv errors": "port_rcv_errors",
    "port rcv remote physical errors": "port_rcv_remote_physical_errors",
    "portrcvpkts": "rx_packets",
}
_WORD = 4  # bytes of a unit of PortRcvData (IBTA specification 1, 16.1.3.5)
_OF_PORTS = frozenset(quantity for name, quantity in _QUANTITIES.items() if " " not in name) - {"rx_packets"}
UNNAMED = "nic"


def read(part: Part) -> Iterator[Record]:
    """A `Net` or a `Port` per output, and its counters. In an output the first value of a counter counts, and in
    several outputs of one device the largest: counters only rise.
    """
    file = _FILE.search(part.file)
    kind: type[Fact] = Net
    key, named, outputs = (file[1], True, 0) if file else (UNNAMED, False, 0)
    found, counts = FactCollector(), _Counts(part)
    names, first = set[str](), 0  # the counters and the first line of this output
    for place, line in part.lines():
        if command := _NAMED.search(line):
            first = place
            kind, key, named = Net, command["device"] or command["other"], True
            names.clear()
        elif new := _NEW.search(line):
            outputs, first = outputs + 1, place
            if new["lid"]:
                kind, key, named = Port, f"lid{new['lid']}/{new['port']}", True
            elif not named and outputs > 1:
                kind, key = Net, f"{UNNAMED} {outputs}"
            named = named and bool(new["lid"])
            names.clear()
        elif counter := _counter(line):
            name, quantity, value = counter
            if name in names:  # an output without its heading begins here
                first = place
                names.clear()
                if key.startswith(UNNAMED):
                    outputs = max(outputs, 1) + 1
                    kind, key = Net, f"{UNNAMED} {outputs}"
            names.add(name)
            if kind is Net and _is_of_port(key, name, quantity):
                kind = Port
            found.add(kind, key, part.cite(place, line))
            counts.add(key, quantity, value, place, line, first)
    repeated = _repeated(counts.counted)
    yield from (one for one in found.records() if not isinstance(one, Fact) or one.key not in repeated)
    yield from (one for (key, _), one in counts.counted.items() if key not in repeated)


class _Counts(Struct):
    """The counters by device and quantity, and the line at which the output of each begins."""

    part: Part
    counted: dict[tuple[str, str], Observation] = field(default_factory=dict)
    begun: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, key: str, quantity: str, value: float, place: int, line: str, first: int) -> None:
        """Add a counter of the output that begins at the line `first`."""
        at, where = self.part.at, self.part.cite(place, line)
        one = Observation(about=key, quantity=quantity, unit="count", value=value, at=at, evidence=where)
        known = self.counted.setdefault((key, quantity), one)
        another = self.begun.setdefault((key, quantity), first) != first
        if (another or quantity.endswith("_pause")) and known.value < value:  # pauses: a counter for each priority
            self.counted[key, quantity] = one


def _is_of_port(key: str, name: str, quantity: str) -> bool:
    """Whether a counter of an unnamed device is that of an RDMA port. ethtool has a few of them, too."""
    return quantity in _OF_PORTS and (key == UNNAMED or (key.startswith(UNNAMED) and not name.endswith(" phy")))


def _repeated(counted: Mapping[tuple[str, str], Observation]) -> set[str]:
    """The unnamed devices ("nic 2") with the values of an earlier one: the same output was taken again."""
    values: dict[str, dict[str, float]] = {}
    for (key, quantity), one in counted.items():
        values.setdefault(key, {})[quantity] = one.value
    keys = list(values)
    return {
        key
        for number, key in enumerate(keys)
        if key.startswith(f"{UNNAMED} ") and any(values[key] == values[earlier] for earlier in keys[:number])
    }


def _counter(line: str) -> tuple[str, str, float] | None:
    """The counter of a line, in its name there and in the name that all sources use, and its value."""
    name, value = entry(line) or ("", "")
    name = name.removesuffix(" extended")  # the counters of 64 bits in ibdiagnet2.pm
    if not _VALUE.fullmatch(value):
        return None
    lane = _LANE.fullmatch(name)
    quantity = f"rx_lane{lane[1]}_errors" if lane else _QUANTITIES.get(name)
    if quantity is None:
        return None
    count = float(number(value))
    count = count // 2 if name == _CHANGES else count
    return (name, "rx_bytes", count * _WORD) if quantity == "port_rcv_data" else (name, quantity, count)
