"""Tools of an InfiniBand fabric (infiniband-diags): iblinkinfo(8), ibportstate(8), smpquery(8), ibnetdiscover(8).

iblinkinfo compares both ends of each link: "Could be 4X" is a link on fewer lanes than both support. The ports of a
fabric belong to many nodes, so their rates are no cohort, and the reader stores a rate only beside the possible one.
ibnetdiscover has names and cables, which are no state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....models.catalog.infiniband import LANE_GIGABITS
from ....models.facts.machine import Port
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ....models.facts.units import from_gigabits
from ...parsing.parsers import shown
from ..core.part import Part
from .rdma_tools import physical_state

_LINK = (
    r"(?:0x[0-9a-f]{16} [ \t]{0,20})?(?:\"[^\"\n]{0,80}\" {0,8})?(?P<lid>[0-9]{1,5}) {1,8}(?P<port>[0-9]{1,3})"
    r"\[[ ]{0,4}[0-9]{0,3}\] {0,4}==\( {0,20}"
)
_SLOWEST = "2.5"
_PORT_INFO = r"# Port info: (?:Lid [0-9]|DR path )"
_OTHERS = {
    "ibnetdiscover": r"(?:CA|SW|RT) {1,8}[0-9]{1,5} {1,4}[0-9]{1,3} 0x[0-9a-f]{16} |vendid=0x[0-9a-f]{1,8}[ \t]*$"
}
BEGIN = (
    (
        rf"^[ \t]*(?:{'|'.join(_OTHERS.values())}|(?:CA|Switch): [^\n]{{1,120}}:[ \t]*\n[ \t]*(?:0x|[0-9])|{_LINK}"
        rf"|(?:CA/RT |Switch |Peer )?PortInfo:[ \t]*$|{_PORT_INFO}"
        rf"|(?:(?:Phys)?LinkState|Link(?:Width|Speed)\w{{6,12}}):\.{{3}})"
    )
    .replace("(?P<lid>", "(?:")
    .replace("(?P<port>", "(?:")
)
_BEGUN = {tool: re.compile(rf"^[ \t]*(?:{form})", re.MULTILINE) for tool, form in _OTHERS.items()}
_SPEED = r"[0-9]{1,4}(?:\.[0-9]{1,6})?"  # of a lane, Gb/s
_ROW = re.compile(
    rf"[ \t]*{_LINK}(?:(?P<lanes>[0-9]{{1,2}}X) {{1,12}}(?P<speed>{_SPEED}|[A-Z0-9]{{3,5}})(?: Gbps)? {{1,8}})?"
    r"(?P<state>[A-Z][a-z]{2,12})[ ]?/ {0,8}(?P<physical>[A-Z]\w{2,20})\)==>"
    r"(?P<peer>[^()\n]{0,160})(?:\((?P<rest>[^()\n]{0,80}))?"
)
_HEAD = re.compile(r"[ \t]*(?P<kind>CA|Switch): (?P<name>[^\n]{1,120}):[ \t]*")
_SWITCH = re.compile(r"\"(?:MF0;|SwitchX|Quantum|Infiniscale)|/U\d+\"")  # the names of switches begin or end like this
_COULD = re.compile(
    r"[Cc]ould [Bb]e (?:(?P<lanes>[0-9]{1,2})X)?(?: ?[Aa]ctive)?(?: ?(?P<speed>[0-9]{1,4}(?:\.[0-9]{1,6})?) Gbps)?"
    r"(?: ?(?P<grade>[A-Z]{3}))?"
)
_NEW = re.compile(r"# Port info: (?:Lid (?P<lid>\d{1,5})|DR path [^\n]{0,60}?) ?port (?P<port>\d{1,3})")
_FIELD = re.compile(r"[ \t>]*(?P<name>[A-Z]\w{2,30}):\.{2,60}(?P<value>[A-Za-z0-9][^\n]{0,79})")
# Rates of a lane as the tools print them, and what people call it: FDR has 14.0625 Gb/s with its coding (IBTA 1, 5.6).
_LANE = {2.5: 2.5, 5.0: 5, 10.0: 10, 14.0625: 14, 25.78125: 25, 53.125: 50, 106.25: 100, 212.5: 200}
_STATES = {"Active": "ACTIVE", "Down": "DOWN", "Initialize": "INIT", "Init": "INIT", "Armed": "ARMED"}


def read(part: Part) -> Iterator[Record]:
    """A `Port` per adapter, link that could be faster, and port of ibportstate. A NotChecked for ibnetdiscover."""
    found: dict[str, Port] = {}
    several: list[Port | NotChecked] = []
    adapter: bool | None = None
    fields: dict[str, tuple[str, Evidence]] = {}
    key = "port"
    for number, line in part.lines():
        if head := _HEAD.fullmatch(line):
            adapter = head["kind"] == "CA" and "Aggregation Node" not in head["name"]
        elif row := _ROW.match(line):
            port = _linked(row, part.cite(number, line))
            if isinstance(port, NotChecked):
                several.append(port)
                continue
            known = adapter if adapter is not None else bool(_SWITCH.search(row["peer"]))
            if (port.wanted_rate or known) and port.key not in found:
                found[port.key] = port
        elif new := _NEW.search(line):
            several += _port(key, fields)
            key, fields = f"lid{new['lid']}/{new['port']}" if new["lid"] else f"port{new['port']}", {}
        elif value := _FIELD.fullmatch(line):
            fields.setdefault(value["name"], (value["value"].strip(), part.cite(number, line)))
    several += _port(key, fields)
    yield from found.values()
    yield from {(type(one), one.key if isinstance(one, Port) else one.subject): one for one in several[::-1]}.values()
    yield from _others(part)


def _linked(row: re.Match[str], cite: Evidence) -> Port | NotChecked:
    """The port of a row of iblinkinfo, or a gap if its state is in no known word."""
    state = _STATES.get(row["state"])
    key = f"lid{int(row['lid'])}/{int(row['port'])}"
    if state is None:
        why = f"{shown(row['state'])} is not the state of a port"
        return NotChecked(what="Port.state", subject=key, reason=Reason.UNREADABLE, path=cite.source, detail=why)
    physical = _physical(row["physical"], cite, key)
    if isinstance(physical, NotChecked):
        return physical
    could, lanes = _COULD.search(row["rest"] or ""), row["lanes"]
    rate = _rate(lanes, row["speed"]) if lanes else None
    wanted = None
    if could and rate and (could["lanes"] or could["speed"] or could["grade"]):
        width = f"{could['lanes']}X" if could["lanes"] else lanes
        possible = _rate(width, could["speed"] or could["grade"] or row["speed"])
        wanted = possible if possible and possible > rate else None
    return Port(
        key=key,
        state=state,
        physical_state=physical,
        link_layer="InfiniBand",
        lanes=lanes,
        rate=rate if wanted else None,
        wanted_rate=wanted,
        cites=dict.fromkeys(("state", *(("rate", "wanted_rate") if wanted else ())), cite),
    )


def _physical(text: str, cite: Evidence, key: str) -> str | NotChecked:
    try:
        return physical_state(text)
    except ValueError as wrong:
        return NotChecked(
            what="Port.physical_state", subject=key, reason=Reason.UNREADABLE, path=cite.source, detail=str(wrong)
        )


def _rate(lanes: str | None, speed: str | None) -> float | None:
    """Bytes per second of "4X" and "25.78125" or "EDR"."""
    if not lanes or not speed:
        return None
    is_number = re.fullmatch(_SPEED, speed)
    lane = _LANE.get(float(speed), float(speed)) if is_number else LANE_GIGABITS.get(speed)
    return from_gigabits(lane * int(lanes[:-1])) if lane else None


def _port(key: str, fields: Mapping[str, tuple[str, Evidence]]) -> Iterator[Port | NotChecked]:
    """The port of ibportstate or smpquery. A width that is configured and not reached is wanted."""
    if "LinkState" not in fields:
        return
    word, cite = fields["LinkState"]
    state = _STATES.get(word)
    if state is None:
        why = f"{shown(word)} is not the state of a port"
        yield NotChecked(what="Port.state", subject=key, reason=Reason.UNREADABLE, path=cite.source, detail=why)
        return
    physical = _physical(*fields["PhysLinkState"], key) if "PhysLinkState" in fields else None
    yield from (physical,) if isinstance(physical, NotChecked) else ()
    lanes, enabled = (fields.get(name, ("",))[0] for name in ("LinkWidthActive", "LinkWidthEnabled"))
    speed = next((text for name in ("LinkSpeedExtActive", "LinkSpeedActive") if (text := _number(fields, name))), None)
    most = max((int(one) for one in re.findall(r"(\d{1,2})X", enabled)), default=None)
    known = state == "ACTIVE" and most is not None and re.fullmatch(r"\d{1,2}X", lanes)
    narrow = bool(known and int(lanes[:-1]) < (most or 0))
    slow = _faster(fields) if state == "ACTIVE" and speed == _SLOWEST else None
    if narrow and speed is None:
        why = f"the link runs at {lanes} of {most}X, and the text does not show the speed of a lane"
        where = fields["LinkWidthActive"][1].source
        yield NotChecked(what="Port.rate", subject=key, reason=Reason.INCOMPLETE, path=where, detail=why)
    yield Port(
        key=key,
        state=state,
        physical_state=physical if isinstance(physical, str) else None,
        link_layer="InfiniBand",
        rate=_rate(lanes, speed) if narrow or slow else None,
        wanted_rate=_rate(f"{most}X", speed) if narrow else _rate(lanes, slow),
        cites={
            field: fields[name][1]
            for field, name in (
                ("state", "LinkState"),
                ("physical_state", "PhysLinkState"),
                ("rate", "LinkWidthActive"),
            )
            if name in fields
        },
    )


def _faster(fields: Mapping[str, tuple[str, Evidence]]) -> str | None:
    """The highest speed that the port has enabled, if it is above the lowest one.

    An older switch gives a lower speed, too; the lowest one means that the two ends did not agree.
    """
    found = re.findall(rf"({_SPEED})(?= Gbps)", fields.get("LinkSpeedEnabled", ("",))[0])
    most = max(found, key=float, default=_SLOWEST)
    return most if float(most) > float(_SLOWEST) else None


def _number(fields: Mapping[str, tuple[str, Evidence]], name: str) -> str | None:
    found = re.match(rf"{_SPEED}(?= Gbps)", fields.get(name, ("",))[0])
    return found[0] if found else None


def _others(part: Part) -> Iterator[NotChecked]:
    for tool, begun in _BEGUN.items():
        if found := begun.search(part.text):
            yield NotChecked(
                what="Port.counters",
                subject="node",
                reason=Reason.OTHER,
                path=part.where(part.text.count("\n", 0, found.start())),
                detail=f"{tool} is not read: a fabric has many nodes, but linkgauge evaluates one node",
                how="add the output of ibstat or ibv_devinfo of the node",
            )
