"""Tables of ports on switches: SONiC, Cumulus Linux, Arista EOS, Cisco NX-OS, NVIDIA Onyx, Hedgehog.

A switch has spare ports, and a table does not say which. So a port that is enabled and down is a fault only if someone
has written down what it is connected to. A port that the switch itself disabled after an error is always one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ....models.facts.machine import Event
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ..core.part import Part

_GAP = r"[ ]{2,90}"
BEGIN = (
    rf"^[ \t]{{0,16}}(?:Interface{_GAP}Lanes{_GAP}Speed[ ]|Interface{_GAP}Oper{_GAP}Admin{_GAP}Alias[ ]"
    rf"|Port{_GAP}Name{_GAP}Status{_GAP}Vlan[ ]|State{_GAP}Name{_GAP}Spd[ ]|Interface{_GAP}Admin Status{_GAP}"
    rf"Oper Status|Interface{_GAP}State{_GAP}Speed{_GAP}MTU[ ]|Interface{_GAP}Status{_GAP}Protocol{_GAP}Description"
    rf"|Interface{_GAP}Description{_GAP}Speed{_GAP}Current line rate|NAME{_GAP}NOS{_GAP}TYPE{_GAP}CONNECTION)"
)
_HEADING = re.compile(BEGIN)
_CELL = re.compile(r"\S+(?: \S+)*")
_RULE = re.compile(r"[ \t]*[-=+ ]{8,400}$")
# The columns of each meaning, in the order in which they count
_PORT = ("Interface", "Port", "NAME", "Name")
_PEER = ("Description", "CONNECTION / MODE", "LLDP", "Remote Host", "Name")
_ADMIN = ("Admin Status", "Admin", "ADM / OP")
_STATE = ("Oper Status", "Oper", "ADM / OP", "Protocol", "Status", "Physical port state", "State")
_NAME = re.compile(r"[A-Za-z][A-Za-z-]{0,20}\d{0,4}(?:[/.:s]\d{1,4}){0,4}")
_DOWN = frozenset(("down", "dn", "notconnect", "notconnec", "polling", "lowerlayerdown", "notconnected"))
_OFF = frozenset(("down", "disabled", "admdn", "admindown"))
_FLAPS = frozenset(("linkflape", "linkflap", "link-flap"))
_ERROR = frozenset(("errdisabled", "errdisable", "err-disabled", "err-disable", "errdisabl", "hw-failure", "errdisab"))
_ABSENT = frozenset(("notpresent", "xcvrabsen", "sfpabsent"))  # no module
_NOBODY = re.compile(
    r"(?:-{0,2}|n(?:/a?)?|none|.{0,40}\b(?:spare|unused|reserved|free|empty|not used|future|decom\w{0,12}"
    r"|off|offline|rma(?:'?d)?|removed?|retired|returned|maint(?:enance)?|powered down|disconnected)\b.{0,60})",
    re.I,
)
_MOST = 100  # ports of a text


class _Port(Struct, frozen=True):
    name: str
    peer: str
    state: str
    off: bool  # the administrator disabled it


def read(part: Part) -> Iterator[Record]:
    """An event for each port that is down and should be up, and a gap for those that are perhaps not in use."""
    columns: Mapping[str, tuple[int, int]] = {}
    idle, found = dict[str, str](), dict[str, Event]()
    peers = dict[str, str]()
    for number, line in part.lines():
        if _HEADING.match(line):
            columns = {one[0]: one.span() for one in _CELL.finditer(line)}
        elif columns and not _RULE.match(line) and (port := _port(line, columns)):
            if peers.setdefault(port.name, port.peer) == port.peer:  # else it is a port of another switch
                found.pop(port.name, None)  # the last table counts
                idle.pop(port.name, None)
            text, name = _fault(port)
            if name and len(found) < _MOST:
                found.setdefault(port.name, part.event(number, line, name, port.name, text))
            elif not port.off and (port.state in _DOWN or (port.peer and port.state in _ABSENT)):
                idle[port.name] = part.where(number)
    yield from found.values()
    if idle and (place := next(iter(idle.values()))):
        names = ", ".join(list(idle)[:4]) + (f" and {len(idle) - 4} more" if len(idle) > 4 else "")
        yield NotChecked(
            what="dump",
            subject="node",
            reason=Reason.OTHER,
            path=place,
            detail=f"the ports {names} of a switch are enabled and down, and the table names nothing behind them",
            how="show interfaces description: the ports that should be up",
        )


def _fault(port: _Port) -> tuple[str, str | None]:
    """The text of the port's event and the name of its row. None: the table shows no fault of it."""
    peer = f" ({port.peer})" if port.peer else ""
    if port.state in _FLAPS:
        return f"switch port {port.name}{peer}: disabled because it flaps", "switch-port-flaps"
    if port.state in _ERROR:
        return f"switch port {port.name}{peer}: disabled after an error", "switch-port-disabled"
    if port.state in _DOWN and port.peer and not port.off:
        return f"switch port {port.name}{peer}: enabled and down", "switch-port-down"
    return "", None


def _port(line: str, columns: Mapping[str, tuple[int, int]]) -> _Port | None:
    """The port of a row. None: the line is no row."""
    cells = dict[str, str]()
    for begin, end in _spans(line, columns):
        column = _column(begin, end, columns)
        cells[column] = f"{cells.get(column, '')} {line[begin:end].strip()}".strip()
    named = next((name for name in _PORT if name in columns), "")
    if not line[slice(*columns.get(named, (0, 0)))].strip():
        return None  # its name is missing
    name, state = cells.get(named, "").split(" ")[0], _first(cells, columns, _STATE)
    if not _NAME.fullmatch(name) or not state:
        return None
    admin = _first(cells, columns, _ADMIN).split("/")[0]
    peer = next((cells.get(one, "") for one in _PEER if one in columns and one != named), "")
    return _Port(
        name=name,
        peer="" if _NOBODY.fullmatch(peer[:60]) else peer[:60],
        state=state.split("/")[-1],
        off=admin in _OFF or state in _OFF - _DOWN or cells.get("Status", "").lower().startswith("admin"),
    )


def _first(cells: Mapping[str, str], columns: Mapping[str, tuple[int, int]], names: tuple[str, ...]) -> str:
    """The first word of the first of these columns that the table has, in lower case."""
    name = next((one for one in names if one in columns), "")
    return cells.get(name, "").split(" ")[0].lower()


def _spans(line: str, columns: Mapping[str, tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The cells of a row. One blank separates two cells where the heading of the second begins."""
    starts = [
        start for start, _ in columns.values() if line[start - 1 : start] == " " and line[start : start + 1].strip()
    ]
    for cell in _CELL.finditer(line):
        begin, end = cell.span()
        for start in (*(one for one in starts if begin < one < end), end):
            yield begin, start
            begin = start


def _column(begin: int, end: int, columns: Mapping[str, tuple[int, int]]) -> str:
    """The column that a cell is below: the one that it overlaps most, else the nearest."""
    return max(columns, key=lambda name: min(end, columns[name][1]) - max(begin, columns[name][0]))
