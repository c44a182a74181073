"""JSON records of health agents of nodes: the name of a check, its state and a message.

NVSentinel (data-models, HealthEvent: checkName, isFatal, isHealthy, errorCode, entitiesImpacted), gpud (api/v1:
component, states, health or healthy, reason), node-problem-detector and conditions of nodes (type, status, reason,
message). models/catalog/messages/agent_checks.toml has the meaning of each kind of check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ....models.facts.machine import Event
from ....models.facts.records import Record
from ..core.json_pieces import pieces
from ..core.part import Part
from .condition_lists import conditions

_NEEDLES = ('"checkName"', '"check"', '"component"', '"check_name"', '"reason"', '"message"', "reason: ")
_CHECK, _HEALTHY = ("checkName", "check_name", "check", "component"), ("isHealthy", "is_healthy", "healthy")
_FATAL, _SAID = ("isFatal", "is_fatal", "fatal"), ("message", "reason", "error")
# The kinds of checks, by words of the name of the check and of its error codes. The first one that fits
_KINDS: Mapping[str, str] = {
    "sxid": r"(?-i:SXID|SXid|(?<![A-Za-z])sxid)",  # not the end of "SysLogs" before "XID"
    "xid": r"xid",
    "remap": r"remap|retired",
    "ecc": r"ecc|gpu[-_]?mem|dbe|sram",
    "nvlink": r"nvlink",
    "fabric": r"fabric",
    "nvswitch": r"nvswitch",
    "heat": r"thermal|temperature|slow-?down|throttl|power",
    "count": r"gpu[-_]?(?:count|lost|missing)|fallen|off[-_]?the[-_]?bus|off_bus",
    "port": r"infiniband|ethernet|(?<![a-z])nic|(?<![a-z])ib(?![a-z])|rdma|roce|mellanox|link[-_]?flap",
    "pcie": r"pci",
    "driver": r"driver|nvml|inforom|dcgm[-_]?(?:conn|unresp)|gpu[-_]?health|accelerated",
    "disk": r"disk|file-?system|nvme|storage|raid",
}
_KIND = {name: re.compile(words, re.IGNORECASE) for name, words in _KINDS.items()}
# Conditions of a node that are true on every healthy node, or about pods
_USUAL = re.compile(r"\w*(?:Ready|Pressure|Scheduled|Initialized|Available|Progressing|Complete|Unavailable)")
_FINE = re.compile(
    r"(?:^|Is|Has)No(?!t(?:Healthy|Ready|Ok))[A-Z]\w*|IsHealthy$|NotDetected$|NoIssues?$|IsOk$|No Health Failures"
    r"|\bhealthy\b|\bno (?:\w+ ){0,3}(?:issues?|errors?|problems?|failures?)\b(?: found)?",
)
_PROBLEM = re.compile(r"Deadlock|Hung|Unhealthy|Problem|Corrupt|Frequent|Error|Fail|Unresponsive")  # of a condition
_UNHEALTHY = re.compile(r"(?i)(?:gpu|nvidia|nvlink|infiniband|ib|nic|accelerator)\w{0,20}unhealthy")  # of a condition
_BAD = re.compile(
    r"(?i:\bdown\b|polling|disabled|\blost\b|missing|fail|error|degrad|flap|not active|inactive|unhealthy|exceed"
    r"|mismatch|fallen|uncorrect|pending|threshold|unresponsive|timed? ?out)"
)
_RDMA = re.compile(
    r"(?<![\w.])((?:mlx5|bnxt_re|irdma|ionic|erdma|efa|rocep|ibp)\w{0,12})(?:[ /:,]{1,2}(?:port )?([1-4])(?!\d))?"
)
_GPU = re.compile(r"\bGPU[ #:]?(\d{1,2})\b")
_XID = re.compile(r"(?i)\bxid\W{0,3}(?:errors?\W{1,3})?([1-9][0-9]{0,2})\b")
_WARNS, _GRAVE = ("Warning",), ("Critical", "Fatal")  # types of gpud's events
_PCI = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE)
_FLAPS, _RATE = re.compile(r"(?i)flap"), re.compile(r"(?i)\b(?:rate|speed|[gm]b(?:/s|ps))")
_DOWN = re.compile(r"(?i)\bdown\b|polling|disabled|not active|inactive|only \d+ port|no carrier|missing|disappear")
_FIRST_QUOTE = re.compile(r"\"(?=[\[{]{1,3}(?:\\n)?[ ]{0,8}\\\")")
_LAST_QUOTE = re.compile(r"(?<=[\]}])\"(?=[ \t]{0,8}(?:[,}\]]|$))", re.MULTILINE)
_LONGEST = 1 << 21  # characters
_MOST, _NEAR = 500, 200  # events; lines of a record


class _State(Struct, frozen=True):
    """An unhealthy state of a check."""

    check: str
    message: str
    fatal: bool
    codes: tuple[str, ...]
    entities: tuple[tuple[str, str], ...]


def read_health(part: Part) -> Iterator[Record]:
    """An event for each check that is not healthy. The last state of a check and its device counts."""
    text = _unescaped(part.text) if '\\"' in part.text else part.text
    if len(text) > _LONGEST or not any(needle in text for needle in _NEEDLES):
        return
    found: dict[tuple[str, str], Event] = {}
    lines = part.text.split("\n")
    found_in = (*pieces(Part(part.file, part.first, text, part.at, part.before, part.places), 0), *conditions(text))
    for outer, line in found_in:
        for check, record in _records(outer, ""):
            state = _state(check, record)
            if state is not None:
                subject = _subject(state)
                bad = state.message and _is_bad(record, state)
                if bad:
                    found[state.check, subject] = _event(part, lines, line, state, subject)
                else:
                    _clear(found, state.check, subject)
            if len(found) > _MOST:
                return
    yield from found.values()


def _unescaped(text: str) -> str:
    """The text with the records that are strings of other records: what a container or a collector of logs wrote."""
    text = _LAST_QUOTE.sub("", _FIRST_QUOTE.sub("", text))
    return text.replace('\\"', '"').replace("\\n", " ")


def _clear(found: dict[tuple[str, str], Event], check: str, subject: str) -> None:
    """Remove the events of a check that is healthy now: of one device, or of all if it names none."""
    for key in [key for key in found if key[0] == check and subject in (key[1], "node")]:
        del found[key]


def _records(value: Any, check: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects, each with the name of its check. A list of states is below the name."""
    if isinstance(value, dict):
        named = next((text for name in _CHECK if isinstance(text := value.get(name), str) and text), check)
        yield named, value
        for inner in value.values():
            yield from _records(inner, named)
    elif isinstance(value, list):
        for inner in value:
            yield from _records(inner, check)


def _state(check: str, record: Mapping[str, Any]) -> _State | None:
    """The state of a record. None: it has none."""
    if {"type", "status", "reason"} <= record.keys():
        check = str(record["type"])
        if _USUAL.fullmatch(check) or record["status"] not in ("True", "False", True, False):
            return None
    elif _is_event(record):
        check = f"{check} {record['name']}".strip()
    elif not check or not any(name in record for name in (*_HEALTHY, *_FATAL, "health")):
        return None
    message = next((text for name in _SAID if isinstance(text := record.get(name), str) and len(text) > 2), "")
    codes = record.get("errorCode") or record.get("error_code") or ()
    entities = record.get("entitiesImpacted") or record.get("entities_impacted") or ()
    return _State(
        check,
        " ".join(message.split())[:160],
        _is_fatal(check, record),
        tuple(map(str, codes)) if isinstance(codes, list) else (str(codes),) if codes else (),
        tuple(_entity(one) for one in entities if isinstance(one, dict)) if isinstance(entities, list) else (),
    )


def _is_fatal(check: str, record: Mapping[str, Any]) -> bool:
    if _is_event(record):
        return record["type"] in _GRAVE
    lost = "status" in record and _KIND["count"].search(check) is not None  # a condition that a GPU is missing
    return lost or any(record.get(name) is True for name in _FATAL) or record.get("health") == "Unhealthy"


def _is_event(record: Mapping[str, Any]) -> bool:
    """Whether the record is an event of gpud (api/v1, Event)."""
    named = all(isinstance(record.get(name), str) for name in ("time", "name", "type", "message"))
    return named and record["type"] in (*_WARNS, *_GRAVE)


def _entity(one: Mapping[str, Any]) -> tuple[str, str]:
    kind, value = (str(one.get(name) or one.get(name.lower()) or "") for name in ("entityType", "entityValue"))
    return kind.lower(), value


def _is_bad(record: Mapping[str, Any], state: _State) -> bool:
    """Whether the check is not healthy. If only a flag for grave events is given and not set, the message decides."""
    if _is_event(record):
        return True
    healthy = next((record[name] for name in _HEALTHY if isinstance(record.get(name), bool)), None)
    health = record.get("health")
    if isinstance(health, str):
        return health.lower() in ("unhealthy", "degraded")
    if healthy is not None:
        return not healthy
    if "status" in record and "type" in record:
        told = _kind(state) != "other" or _PROBLEM.search(state.check) or _UNHEALTHY.search(state.check)
        return bool(told and str(record["status"]) == "True" and not _FINE.search(str(record["reason"])))
    return state.fatal or bool(_BAD.search(state.message) and not _FINE.search(state.message))


def _event(part: Part, lines: Sequence[str], line: int, state: _State, subject: str) -> Event:
    """The event, with the line that has the message: that of the record, or one of the next lines."""
    near = range(line, min(line + _NEAR, len(lines)))
    place = next((number for number in near if state.message[:40] in lines[number]), line)
    cite = part.cite(place, lines[place])
    kind = _kind(state)
    if code := _xid(kind, state):
        subject = "gpu" if subject == "node" else subject
        key = f"xid {subject} {code}"
        cites = {"text": cite}
        return Event(key=key, kind="xid", code=int(code), subject=subject, text=state.message, count=1, cites=cites)
    grade = "-fatal" if state.fatal and kind != "other" else ""
    text = f"check {state.check} [{kind}{grade}]: {state.message}"
    name = f"agent-check-{kind}{grade}"
    key = f"message {subject} {name} {state.check}"
    return Event(key=key, kind="message", name=name, subject=subject, text=text, count=1, cites={"text": cite})


def _xid(kind: str, state: _State) -> str | None:
    """The number of the Xid that the state is about."""
    if kind not in ("xid", "other", "driver", "count"):
        return None
    numbers = (code for code in state.codes if kind == "xid" and code.isdecimal())
    named = _XID.search(" ".join((state.message, *state.codes)))
    return next(numbers, named[1] if named else None)


def _kind(state: _State) -> str:
    words = (state.check, " ".join(state.codes))
    kind = next((name for text in words for name, form in _KIND.items() if form.search(text)), "other")
    if kind == "port":
        down, flaps = _DOWN.search(state.message), _FLAPS.search(f"{state.check} {state.message}")
        return "flap" if flaps else "port" if down else "rate" if _RATE.search(state.message) else "counter"
    return "nvlink-counter" if kind == "nvlink" and not _DOWN.search(" ".join((state.message, *words))) else kind


def _subject(state: _State) -> str:
    """The device that the record or its message names."""
    for kind, value in state.entities:
        if kind == "gpu" and value.isdecimal():
            return f"gpu{int(value)}"
        if kind == "pci" and (found := _PCI.fullmatch(value)):
            return f"{found[1].lower()}.{found[2] or 0}"
        if kind in ("nic", "ib", "rdma", "infiniband", "ethernet") and (found := _RDMA.match(value)):
            return f"{found[1]}/{found[2] or 1}"
    if found := _PCI.search(state.message):
        return f"{found[1].lower()}.{found[2] or 0}"
    if found := _RDMA.search(state.message):
        return f"{found[1]}/{found[2] or 1}"
    return f"gpu{int(found[1])}" if (found := _GPU.search(state.message)) else "node"
