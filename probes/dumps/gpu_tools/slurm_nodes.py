"""Nodes that Slurm does not use, and why: sinfo, sinfo -N -l, sinfo -R, scontrol show node (SchedMD/slurm, src/sinfo).

A node that an operator took out of service on purpose is no fault. The row slurm-node-out has the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....models.facts.machine import Event
from ....models.facts.records import Record
from ..core.part import Part

_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_NODES = r"[A-Za-z][\w.,\[\]-]{0,120}"
BEGIN = (
    r"^[ \t]*(?:REASON[ ]{2,40}USER[ ]{2,20}TIMESTAMP[ ]{2,20}NODELIST"
    r"|PARTITION[ ]{1,12}AVAIL[ ][^\n]{0,120}STATE[^\n]*"
    r"|NODELIST[ ]{1,20}(?:NODES[ ]{1,8})?PARTITION[ ][^\n]{0,40}STATE[^\n]*"
    r"|NodeName=[A-Za-z][\w.-]{0,62}(?:[ ]|$)[^\n]*)"
)
_OUT = r"(?P<state>(?:down|drain(?:ed|ing)?|drng|fail(?:ing|g)?|inval|error)[*~#$@^+-]{0,3}|(?:idle|alloc|mix)\*)"
_REASON = re.compile(
    rf"^[ \t]*(?P<reason>\S[^\n]{{1,60}}?)[ ]{{1,40}}[\w.-]{{1,32}}[ ]{{1,20}}{_TIME}[ ]{{1,8}}(?P<nodes>{_NODES})$"
)
_ROW = re.compile(
    rf"^[ \t]*[\w.-]{{1,40}}\*?[ ]{{1,20}}\w{{2,8}}[ ]{{1,20}}\S{{1,20}}[ ]{{1,12}}\d{{1,6}}[ ]{{1,12}}{_OUT}"
    rf"[ ]{{1,12}}(?P<nodes>{_NODES})$"
)
_LONG = re.compile(
    rf"^[ \t]*(?P<nodes>{_NODES})[ ]{{1,20}}\d{{1,6}}[ ]{{1,20}}\S{{1,40}}[ ]{{1,20}}{_OUT}[ ]{{1,12}}\d[^\n]{{0,120}}?"
    r"[ ]{1,12}(?:\(null\)|[a-z][\w,.|]{0,60})[ ]{1,3}(?P<reason>(?!\(null\))\S[^\n]{0,100})$"
)
_NODE = re.compile(rf"(?<!\w)NodeName=(?P<nodes>{_NODES})")
_STATE = re.compile(r"(?<!\w)State=(?P<state>[A-Z_+*~#$@^-]{3,60})")
_WHY = re.compile(rf"(?<!\w)Reason=(?P<reason>\S[^\n]{{1,160}}?)(?: \[[\w.-]{{1,32}}@{_TIME}\])?$")
_BAD_STATE = re.compile(r"DOWN|DRAIN|FAIL|INVAL|NOT_RESPONDING|\*")
_PLANNED = re.compile(
    r"(?i)maint|upgrad|reserve|reservation|planned|updates?\b|updating|reboot|install|migrat|decommission|power.?save"
    r"|power.?saving|\btest"
)
_UNKNOWN = "no reason is shown"


def read(part: Part) -> Iterator[Record]:
    """An event for each list of nodes and reason."""
    found: dict[str, tuple[str, str, int, str]] = {}
    node: dict[str, str] = {}
    for number, line in part.lines():
        text = line.rstrip()
        if one := _REASON.match(text) or _LONG.match(text) or _ROW.match(text):
            _add(found, one.groupdict(), number, line)
        elif named := _NODE.search(text):
            node = {"nodes": named["nodes"]}
        if node:
            node |= {"state": state["state"]} if (state := _STATE.search(text)) else {}
            if _BAD_STATE.search(node.get("state", "")):
                why = _WHY.search(text)
                node |= {"reason": why["reason"]} if why else {}
                _add(found, node, number, line)
    for nodes, (condition, reason, place, cited) in found.items():
        if not _PLANNED.search(reason) and reason != "none":
            yield _event(part, nodes, condition, reason, place, cited)


def _add(found: dict[str, tuple[str, str, int, str]], one: Mapping[str, str | None], number: int, line: str) -> None:
    """Keep a line, if no earlier one has a reason for the same nodes."""
    nodes, reason = one["nodes"] or "", one.get("reason") or _UNKNOWN
    if nodes not in found or found[nodes][1] == _UNKNOWN:
        found[nodes] = (one.get("state") or "out of service", reason, number, line)


def _event(part: Part, nodes: str, state: str, reason: str, number: int, line: str) -> Event:
    text = f"Slurm node {nodes} is {state}: {reason}"
    subject = nodes if re.fullmatch(r"[\w.-]+", nodes) else "node"
    cites = {"text": part.cite(number, line)}
    key = f"message {subject} slurm-node-out {nodes}"
    return Event(key=key, kind="message", name="slurm-node-out", subject=subject, text=text, count=1, cites=cites)
