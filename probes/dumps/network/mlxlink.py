"""mlxlink of NVIDIA's firmware tools (mstlink of mstflint), as text and with --json: state, speed and error counters of
a port.

mstflint, mlxlink/modules/mlxlink_commander.cpp and mlxlink_ui.cpp; docs.nvidia.com, MFT documentation, mlxlink utility.
The output does not name its device; the command does. Without it, the port has no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....models.catalog.infiniband import LANE_GIGABITS
from ....models.facts.machine import Port
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Observation, Record
from ....models.facts.units import from_gigabits
from ...parsing.parsers import shown
from ..core.fields import FactCollector
from ..core.key_values import entry, plain
from ..core.part import Part
from .mlxlink_module import LINE, module_values

_COMMAND = (
    r"(?:mlxlink|mstlink) (?:[^\n]{1,60} )?(?:-d|--device) (?P<device>[\w.:/-]{1,64})(?: (?:-p|--port) (?P<port>\d))?"
)
BEGIN = (
    rf"^(?:[^\n]{{0,80}}\b{_COMMAND.replace('?P<device>', '?:').replace('?P<port>', '?:')}[^\n]*$"
    r"|[ \t]*Physical Counters and BER Info[ \t]*$"
    r"|[ \t]*Operational Info[ \t]*\n[ \t]*-{4,}[ \t]*$|(?<=Info\n)-{4,}[ \t]*$"  # the line below a headline
    r"|(?:\{[ \t]*)?\"Operational Info\"[ ]?:|\{\s{0,20}\"result\"[ ]?:\s{0,20}\{\s{0,20}\"output\"[ ]?:)"
)
ANY_LINE = (
    r"^[ \t]*\"?(?:(?:Effective Physical|Symbol) Errors\"?[ ]{0,30}:|Time Since Last Clear \["
    r"|Physical state(?:[ ]{3,40}:|\":) \"?(?:LinkUp|ETH_AN_|Polling|Disa)|Link Down Counter\"?[ ]{0,30}:"
    r"|State(?:[ ]{3,30}:|\":) \"?(?:Active|Polling|Disable|Physical LinkUp)"
    r"|Speed(?:[ ]{3,30}:|\":) \"?(?:IB-[A-Z]|\d))"
    rf"|^{LINE}"
)
_NAMED = re.compile(rf"\b{_COMMAND}")
_SPEED = re.compile(r"(?:IB-(?P<grade>[A-Z0-9]{3,5})|(?:BASE-)?(?P<rate>\d{1,4})G(?:_\dX|bE)?\b.*)")
_LANES = re.compile(r"(\d{1,2})x")
# Gb/s of a lane, as in the rates of /sys/class/infiniband (IBTA specification; kernel, ib_rate)
# Mellanox/mstflint mlxlink/modules/mlxlink_maps.cpp, initPortStateMapping: only "Active" carries data
_DOWN = (
    *("disable", "disabled", "down", "port pll down", "polling", "close port", "physical linkup", "sleep"),
    *("rx disable", "signal detect", "receiver detect", "sync peer", "negotiation", "training"),
)
_STATES = {"active": "ACTIVE", **dict.fromkeys(_DOWN, "DOWN")}
_PHYSICAL = {"linkup": "LinkUp", "polling": "Polling", "disabled": "Disabled"}
_COUNTERS = {
    "link down counter": "link_downed",
    "link down events": "link_downed",
    "link error recovery counter": "link_error_recovery",
    "symbol errors": "symbol_error",
    "effective physical errors": "effective_errors",
    "time since last clear min": "minutes_counted",
}
UNNAMED = "port"
_FOUR = 4  # lanes of most ports
_ENABLED, _OF_CABLE = re.compile(r"enabled link speed(?: ext)?"), re.compile(r"supported cable speed(?: ext)?")


def read(part: Part) -> Iterator[Record]:
    """A `Port` per output, and its counters."""
    found, counted = FactCollector(), dict[tuple[str, str], Observation]()
    port, lanes, grade = UNNAMED, 0, ""
    for number, line in part.lines():
        where = part.cite(number, line)
        if command := _NAMED.search(line):
            port, lanes, grade = f"{command['device'].rpartition('/')[2]}/{command['port'] or 1}", 0, ""
            continue
        name, value = entry(line) or ("", "")
        if name in _COUNTERS and re.fullmatch(r"[0-9]{1,19}(?:\.[0-9]{1,3})?", value):
            found.add(Port, port, where)
            one = Observation(
                about=port, quantity=_COUNTERS[name], unit="count", value=float(value), at=part.at, evidence=where
            )
            counted.setdefault((port, one.quantity), one)
        elif name == "state":
            found.take(Port, port, where, "state", value, _state)
        elif fields := _fields(name, value):
            found.add(Port, port, where, **fields)
        grade = speed["grade"] or "" if name == "speed" and (speed := _SPEED.fullmatch(value)) else grade
        lanes = int(width[1]) if name == "width" and (width := _LANES.fullmatch(value)) else lanes
        if lanes and grade in LANE_GIGABITS:
            rate = from_gigabits(lanes * LANE_GIGABITS[grade])
            found.add(Port, port, where, rate=rate, lanes=f"{lanes}X {grade}")
    yield from found.records()
    yield from counted.values()
    yield from _below_both(part)
    yield from module_values(part)


def _below_both(part: Part) -> Iterator[NotChecked]:
    """A gap for each port that is slower than the rates that both it and its cable support."""
    speed = able = 0.0
    for number, line in part.lines():
        name, value = entry(line) or ("", "")
        if name == "speed":
            speed, able = _gigabits(value), 0.0
        elif name == "width" and (width := _LANES.fullmatch(value)):
            speed *= int(width[1]) / _FOUR
        elif _ENABLED.fullmatch(name):
            able = max(map(_gigabits, _listed(value)), default=0.0)
        elif _OF_CABLE.fullmatch(name) and speed:
            both = min(able, max(map(_gigabits, _listed(value)), default=0.0))
            if speed < both:
                why = f"the port runs at {speed:.0f} Gb/s; it and its cable support {both:.0f} Gb/s"
                how = "the rate of the port at the other end"
                path = part.where(number)
                yield NotChecked(
                    what="Port.rate", subject="node", reason=Reason.INCOMPLETE, path=path, detail=why, how=how
                )


def _listed(value: str) -> list[str]:
    """The names in "0x00000080 (NDR,HDR,EDR)"."""
    return re.split(r"[,\s]+", value.partition("(")[2].rstrip(')" '))


def _gigabits(name: str) -> float:
    """Gb/s of "NDR" with four lanes, "IB-NDR" or "400G_4X"; 0 for other words."""
    found = _SPEED.fullmatch(name) or _SPEED.fullmatch(f"IB-{name}")
    if not found:
        return 0.0
    return float(found["rate"]) if found["rate"] else _FOUR * LANE_GIGABITS.get(found["grade"], 0.0)


def _fields(name: str, value: str) -> dict[str, Any]:
    """The fields of a line. Other words are of a damaged line."""
    if name == "physical state":
        return {"physical_state": _PHYSICAL.get(plain(value))}
    if name == "speed" and (speed := _SPEED.fullmatch(value)) and (speed["grade"] in LANE_GIGABITS or speed["rate"]):
        rate = from_gigabits(float(speed["rate"])) if speed["rate"] else None
        return {"link_layer": "InfiniBand" if speed["grade"] else "Ethernet", "rate": rate}
    return {}


def _state(value: str) -> str | None:
    """The state of the port in the words of sysfs. None: the tool does not know it."""
    word = plain(value)
    if word in ("", "n a", "unknown"):
        return None
    if word not in _STATES:
        raise ValueError(f"{shown(value)} is not the state of a port")
    return _STATES[word]
