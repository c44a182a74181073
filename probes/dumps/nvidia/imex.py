"""`nvidia-imex-ctl`: the memory-exchange domain of a rack (-N) and the state of one node (-q).

The IMEX guide of NVIDIA's multi-node NVLink systems describes both. The node with "*" is the one that prints them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Service
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.part import Part

_STATES = (
    "READY|UNAVAILABLE|INITIALIZING|STARTING_AUTH_SERVER|WAITING_FOR_PEERS|WAITING_FOR_RECOVERY|INIT_GPU|SHUTTING_DOWN"
)
_NODE = re.compile(rf"Node #(?P<number>\d{{1,4}})\s+(?P<own>[-*])\s[^#]*?- (?P<state>{_STATES})\b")
_DOMAIN = re.compile(r"(?:Domain State: |\"(?:domainState|status)\"\s*:\s*\")(?P<state>UP|DOWN|DEGRADED)\b")
# A row of the connectivity table: the number of a node, and a letter for each other one. C: connected, A: own address
_TABLE = re.compile(r"[ \t]*Nodes From\\To(?P<nodes>(?:[ \t]+\d{1,4}){1,1152})[ \t]*$")
_CELLS = re.compile(r"[ \t]*(?P<node>\d{1,4})(?P<cells>(?:[ \t]+!?\S!?){1,1152})[ \t]*$")
# I: invalid, N: never connected, R: recovering, D: disconnected, A: authenticating, V, M: another version, another map
_LETTERS = frozenset("CINRDAVM*-")
_OWN = re.compile(rf"IMEX daemon status:\s*(?P<state>{_STATES})\b")
BEGIN = (
    r"^[ \t]*(?:Node #\d{1,4}[ ]+[-*][ ]|Domain State: [A-Z]|IMEX daemon status:|Connectivity Table Legend:"
    r"|Nodes From\\To[ ]{1,12}\d"
    r"|Nodes:[ \t]*\n[ \t]*Node #|(?:\{[ \t]*)?\"domainState\"[ ]?:)"
)
SERVICE = "nvidia-imex"
_MOST_NAMED = 6


def read(part: Part) -> Iterator[Record]:
    """A `Service`, whose state names the nodes that are not ready."""
    domain, waiting, cite, running = "", list[str](), None, None
    columns, rows = list[str](), set[str]()  # of the connectivity table: its heading, and its complete rows
    own = _OWN.search(part.text)
    for number, line in part.lines():
        where = part.cite(number, line)
        if node := _NODE.search(line):
            running = running if node["own"] == "-" else node["state"] != "UNAVAILABLE"
            cite = cite or where
            if node["state"] != "READY":
                waiting.append(f"node {node['number']} {node['state']}")
                cite = where if len(waiting) == 1 else cite
        elif found := _DOMAIN.search(line):
            domain = found["state"]
            cite = where if cite is None or not waiting else cite
        columns = heading["nodes"].split() if (heading := _TABLE.match(line)) else columns
        row = _CELLS.match(line) if columns else None
        if row is None or len(row["cells"].split()) != len(columns):
            continue
        if not _LETTERS.issuperset(row["cells"].replace("!", "").split()):
            yield _gap(part, f"the row of node {row['node']} has a letter that the tool does not print")
        else:
            rows.add(row["node"])
            cite = cite or where
            waiting += _unconnected(row)
    if columns and not domain:
        domain = "DEGRADED" if waiting else "UP" if rows == set(columns) else ""
        cite = cite if domain else None
        if rows != set(columns):
            yield _gap(part, "rows of the connectivity table are missing")
    if own:
        running = own["state"] != "UNAVAILABLE"
        cite = cite or part.cite(part.text.count("\n", 0, own.start("state")), own["state"])
        waiting += [own["state"]] if own["state"] != "READY" and not waiting else []
    waiting = list(dict.fromkeys(waiting))  # an output that was taken twice has each node twice
    if domain == "UP" and waiting:
        yield _gap(part, f"the domain is UP, and {', '.join(waiting[:_MOST_NAMED])}: the lines are of two outputs")
    elif cite:
        yield _service(domain or ("READY" if own and not waiting else ""), waiting, running, cite)


def _gap(part: Part, why: str) -> NotChecked:
    how = "nvidia-imex-ctl -N"
    return NotChecked(what="Service.state", subject=SERVICE, reason=Reason.OTHER, path=part.file, detail=why, how=how)


def _unconnected(row: re.Match[str]) -> list[str]:
    """The node of a row, if most others have no connection to it: a node that is down is so in each other row, too."""
    cells = row["cells"].split()
    lost = [cell for other, cell in enumerate(cells) if cell not in ("C", "*", "-") and other != int(row["node"])]
    return [f"node {row['node']} not connected"] if 2 * len(lost) >= len(cells) - 1 and lost else []


def _service(domain: str, waiting: list[str], running: bool | None, cite: Evidence) -> Service:
    """The service. Its state is unknown if the text has ready nodes only, and not the state of the domain."""
    more = f" and {len(waiting) - _MOST_NAMED} more" if len(waiting) > _MOST_NAMED else ""
    nodes = ", ".join(waiting[:_MOST_NAMED]) + more
    state = "; ".join(filter(None, (domain, nodes))) or None
    cites = {name: cite for name, value in (("state", state), ("running", running)) if value is not None}
    return Service(key=SERVICE, cites=cites, state=state, running=running)
