"""Messages of NVIDIA's fabric manager and related services, and of systemd about them: journals, `systemctl status`,
/var/log/fabricmanager.log, and gpud's fabric state (JSON).

The last message about a service counts. The state in `systemctl status` takes precedence over the log below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.machine import Event, Service
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.nvml_enums import pci_address
from ...system.services import FABRIC_MANAGER
from ..core.part import Part
from ..lines.json_text import loads
from .smi_fields import Card, facts

_NAMES = r"nvidia-(?:fabricmanager|imex|persistenced)"
_LOGGED = r"(?:(?:[A-Z][a-z]{2} [ 0-9][0-9] [0-9:.]{8,15}|[0-9]{4}-[0-9]{2}-[0-9]{2}\S{1,25}) \S{1,64} )?"
_SYSTEMD = rf"systemd\[[0-9]{{1,8}}\]: (?:[A-Z][a-z]{{3,9}} (?:to start )?)?(?:{_NAMES}|NVIDIA fabric manager)"
BEGIN = (
    r"^\[[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{4} [0-9:]{8}\] \[[A-Z]{3,8}\] \[tid [0-9]{1,8}\]"
    rf"|^[ \t]*{_LOGGED}(?:(?:nv-fabricmanager|{_NAMES}(?:-start\.sh)?)\[[0-9]{{1,8}}\]: |{_SYSTEMD})"
    rf"|^[^\w\n]{{0,4}}{_NAMES}\.service - "
    r"|^[ \t]*\{[^\n]{0,200}\"fabric_state(?:s|_supported)\""
)
_NEEDLES = (
    ".service",
    "abric manager",
    "abric Manager",
    "nv-fabricmanager",
    "Active: ",
    "onfigured all the available",
    "don't match with driver",
    "detected NVSwitch",
    '"fabric_state',
)
_SERVICE = re.compile(_NAMES)
_HEAD = re.compile(rf"[^\w\n]{{0,4}}({_NAMES})\.service - ")
_ACTIVE = re.compile(r"\s*Active: (active|inactive|failed)\b")
_UP = re.compile(r"\bStarted\b|Successfully configured all the available")
_DOWN = re.compile(r"process exited|Failed with result|Failed to start|\bStopped\b|failed! Exit code|don't match with")
_MISMATCH = re.compile(r"interface version ([0-9.]{3,20}) don't match with driver version ([0-9.]{3,20}?)\.?(?:\s|$)")
_VERSION = re.compile(r"[Ff]abric Manager version(?: is)? ?:? ?([0-9]{3,4}(?:\.[0-9]{1,4}){1,2})")
_ERROR = re.compile(  # "on fid 0"; "on NodeId 0" since 2024
    r"detected NVSwitch (fatal|non-fatal) error ([0-9]{5}) on .{1,20} on NVSwitch pci bus id "
    r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]) physical id [0-9]{1,3} port ([0-9]{1,3})"
)


class _Known(Struct):
    """The values so far: the state of each service, versions, and NVSwitch errors by key."""

    logged: dict[str, tuple[bool, Evidence]] = field(default_factory=dict)
    active: dict[str, tuple[bool, Evidence]] = field(default_factory=dict)
    manager: tuple[str, Evidence] | None = None
    driver: tuple[str, Evidence] | None = None
    errors: dict[str, list[tuple[re.Match[str], Evidence]]] = field(default_factory=dict)
    status_of: str = FABRIC_MANAGER  # the service in the current `systemctl status` output


def read(part: Part) -> Iterator[Record]:
    """A `Service` per service in the text, the `Driver` that the fabric manager found, and `Event`s for NVSwitch
    errors.
    """
    known = _Known()
    for number, line in part.lines_with(_NEEDLES):
        where = part.cite(number, line)
        if '"fabric_state' in line:
            yield from _state(line, where, part)
        else:
            _line(known, line, where)
    for name in sorted(known.logged.keys() | known.active.keys() | ({FABRIC_MANAGER} if known.manager else set())):
        yield _service(known, name)
    if known.driver:
        version, where = known.driver
        yield Driver(key="nvidia", version=version, cites={"version": where})
    for key, lines in known.errors.items():
        yield _event(key, lines)


def _line(known: _Known, line: str, where: Evidence) -> None:
    name = found[0] if (found := _SERVICE.search(line)) else FABRIC_MANAGER
    if head := _HEAD.match(line):
        known.status_of = head[1]
    elif active := _ACTIVE.match(line):
        known.active[known.status_of] = (active[1] == "active", where)
    elif error := _ERROR.search(line):
        key = f"sxid {error[2]} {pci_address(error[3])} link{error[4]} {'fatal' if error[1] == 'fatal' else 'mild'}"
        known.errors.setdefault(key, []).append((error, where))
    elif _DOWN.search(line):
        known.logged[name] = (False, where)
    elif _UP.search(line):
        known.logged[name] = (True, where)
    if mismatch := _MISMATCH.search(line):
        known.manager, known.driver = (mismatch[1], where), (mismatch[2], where)
    elif version := _VERSION.search(line):
        known.manager = (version[1], where)


def _service(known: _Known, name: str) -> Service:
    running, where = known.active.get(name) or known.logged.get(name) or (None, None)
    version, at = known.manager if known.manager and name == FABRIC_MANAGER else (None, None)
    cites = {field: one for field, one in (("running", where), ("version", at)) if one}
    return Service(key=name, running=running, version=version, cites=cites)


def _event(key: str, lines: list[tuple[re.Match[str], Evidence]]) -> Event:
    """One event for equal errors, as for errors in the kernel log."""
    error, where = lines[-1]
    return Event(
        key=key,
        kind="sxid",
        code=int(error[2]),
        subject=pci_address(error[3]),
        text=error[0],
        fatal=error[1] == "fatal",
        link=int(error[4]),
        count=len(lines),
        cites={"text": where},
    )


def _state(line: str, where: Evidence, part: Part) -> Iterator[Record]:
    """JSON of gpud: whether the fabric manager runs, and the fabric state of each GPU.

    Its GPUs have UUIDs and no numbers.
    """
    try:
        document: Any = loads(line)
    except ValueError as wrong:
        yield NotChecked(what="dump", subject=part.file, reason=Reason.UNREADABLE, path=where.source, detail=str(wrong))
        return
    if not isinstance(document, dict):
        return
    active = document.get("fabric_manager_active")
    if isinstance(active, bool):
        yield Service(key=FABRIC_MANAGER, running=active, cites={"running": where})
    states = document.get("fabric_states")
    for state in states if isinstance(states, list) else ():
        if isinstance(state, dict):
            yield from _joined(state, where, part.at)


def _joined(state: dict[str, Any], where: Evidence, at: float) -> Iterator[Record]:
    names = {
        "gpu_uuid": "uuid",
        "state": "fabric.state",
        "status": "fabric.status",
        "clique_id": "fabric.cliqueId",
        "cluster_uuid": "fabric.clusterUuid",
    }
    texts = {called: (str(state[name]), where) for name, called in names.items() if name in state}
    card = Card(key=str(state.get("gpu_uuid") or "gpu"), texts=texts)
    for one in facts(card, at):
        if isinstance(one, (Gpu, NotChecked)):
            yield one
