"""States of ports in a list: "LnkStat: down", "phys_state: Polling", "carrier: no"."""

from __future__ import annotations

import re

from ..notes.statement import Statement
from .item import Cell

# Names without their separators: link state, port status, IB state, operstate, LnkSta ...
_NAMED = re.compile(
    r"(?:ib|port|phys?(?:ical)?|logical|oper(?:ational)?|link|lnk|carrier|net)?(?:link|lnk)?(?:state?|status|sts|sta|stat)"
    r"|link|physical|carrier|linkdetected|linkup|isup",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[^A-Za-z]+")
_STATES = {
    **dict.fromkeys(("active", "actv", "up", "linkup", "connected", "ok", "online", "yes", "true"), "ACTIVE"),
    **dict.fromkeys(("down", "linkdown", "nolink", "nocarrier", "disconnected", "unplugged", "no", "false"), "DOWN"),
    **dict.fromkeys(("lowerlayerdown", "offline", "inactive", "notconnected", "notpresent"), "DOWN"),
    **dict.fromkeys(("init", "initialize", "initializing"), "INIT"),
    "armed": "ARMED",
}
_PHYSICAL = {"polling": "Polling", "disabled": "Disabled", "sleep": "Sleep", "training": "PortConfigurationTraining"}


def port_state(cell: Cell) -> Statement | None:
    """What a value says about the state of its port. None: it is no state."""
    name, value = (_SEPARATOR.sub("", text).lower() for text in (cell.name, cell.value))
    if not _NAMED.fullmatch(name):
        return None
    state, physical = _STATES.get(value), _PHYSICAL.get(value)
    return Statement(values={}, state=state or "DOWN", physical=physical, gpu={}) if state or physical else None
