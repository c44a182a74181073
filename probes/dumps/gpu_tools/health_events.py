"""JSON records of health agents of nodes: the name of a check, its state and a message.

NVSentinel (data-models, HealthEvent: checkName, isFatal, isHealthy, errorCode, entitiesImpacted), gpud (api/v1:
component, states, health or healthy, reason), node-problem-detector and conditions of nodes (type, status, reason,
message). models/catalog/messages/agent_checks.toml has the meaning of each kind of check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....models.facts.machine import Event
from ....models.facts.records import Record
from ..core.json_pieces import pieces
from ..core.part import Part
from .condition_lists import conditions
from .failed_checks import FailedCheck, counts_devices, event_of_check, kind_of_check, subject_of_check

_NEEDLES = ('"checkName"', '"check"', '"component"', '"check_', '"test', '"reason"', '"message"', "reason: ")
_CHECK = ("checkName", "check_name", "check", "component", "check_id", "checkId", "test", "test_name", "testName")
_HEALTHY = ("isHealthy", "is_healthy", "healthy")
_RESULT = ("status", "result", "outcome", "state")
_FAILED = re.compile(r"(?i)fail(?:ed|ure|ing)?|error|unhealthy|not[ _]ok|nok|critical|degraded|bad")
_PASSED = re.compile(r"(?i)pass(?:ed)?|success|ok|healthy|good|skipped|n/?a")
_FATAL, _SAID = ("isFatal", "is_fatal", "fatal"), ("message", "reason", "error")
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
_WARNS, _GRAVE = ("Warning",), ("Critical", "Fatal")  # types of gpud's events
_FIRST_QUOTE = re.compile(r"\"(?=[\[{]{1,3}(?:\\n)?[ ]{0,8}\\\")")
_LAST_QUOTE = re.compile(r"(?<=[\]}])\"(?=[ \t]{0,8}(?:[,}\]]|$))", re.MULTILINE)
_LONGEST = 1 << 21  # characters
_MOST, _NEAR = 500, 200  # events; lines of a record


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
                subject = subject_of_check(state)
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


def _state(check: str, record: Mapping[str, Any]) -> FailedCheck | None:
    """The state of a record. None: it has none."""
    if {"type", "status", "reason"} <= record.keys():
        check = str(record["type"])
        if _USUAL.fullmatch(check) or record["status"] not in ("True", "False", True, False):
            return None
    elif _is_event(record):
        check = f"{check} {record['name']}".strip()
    elif not check or not (any(name in record for name in (*_HEALTHY, *_FATAL, "health")) or _has_result(record)):
        return None
    message = next((text for name in _SAID if isinstance(text := record.get(name), str) and len(text) > 2), "")
    message = message or next(_errors(record), "")
    codes = record.get("errorCode") or record.get("error_code") or ()
    entities = record.get("entitiesImpacted") or record.get("entities_impacted") or ()
    return FailedCheck(
        check,
        " ".join(message.split())[:160],
        _is_fatal(check, record),
        tuple(map(str, codes)) if isinstance(codes, list) else (str(codes),) if codes else (),
        tuple(_entity(one) for one in entities if isinstance(one, dict)) if isinstance(entities, list) else (),
    )


def _result(record: Mapping[str, Any]) -> bool | None:
    """Whether the result of a check is good. None: the record has no result in known words."""
    for text in (value for name in _RESULT if isinstance(value := record.get(name), str)):
        if _FAILED.fullmatch(text) or _PASSED.fullmatch(text):
            return bool(_PASSED.fullmatch(text))
    return None


def _has_result(record: Mapping[str, Any]) -> bool:
    return _result(record) is not None


def _errors(record: Mapping[str, Any]) -> Iterator[str]:
    """The messages in a list of errors."""
    for one in record["errors"] if isinstance(record.get("errors"), list) else ():
        message = one.get("message") if isinstance(one, dict) else one
        if isinstance(message, str) and len(message) > 2:
            yield message


def _is_fatal(check: str, record: Mapping[str, Any]) -> bool:
    if _is_event(record):
        return record["type"] in _GRAVE
    lost = "status" in record and counts_devices(check)  # a condition that a GPU is missing
    return lost or any(record.get(name) is True for name in _FATAL) or record.get("health") == "Unhealthy"


def _is_event(record: Mapping[str, Any]) -> bool:
    """Whether the record is an event of gpud (api/v1, Event)."""
    named = all(isinstance(record.get(name), str) for name in ("time", "name", "type", "message"))
    return named and record["type"] in (*_WARNS, *_GRAVE)


def _entity(one: Mapping[str, Any]) -> tuple[str, str]:
    kind, value = (str(one.get(name) or one.get(name.lower()) or "") for name in ("entityType", "entityValue"))
    return kind.lower(), value


def _is_bad(record: Mapping[str, Any], state: FailedCheck) -> bool:
    """Whether the check is not healthy. If only a flag for grave events is given and not set, the message decides."""
    if _is_event(record):
        return True
    healthy = next((record[name] for name in _HEALTHY if isinstance(record.get(name), bool)), None)
    health = record.get("health")
    if isinstance(health, str):
        return health.lower() in ("unhealthy", "degraded")
    if healthy is not None:
        return not healthy
    if (good := _result(record)) is not None:
        return not good
    if "status" in record and "type" in record:
        told = kind_of_check(state) != "other" or _PROBLEM.search(state.check) or _UNHEALTHY.search(state.check)
        return bool(told and str(record["status"]) == "True" and not _FINE.search(str(record["reason"])))
    return state.fatal or bool(_BAD.search(state.message) and not _FINE.search(state.message))


def _event(part: Part, lines: Sequence[str], line: int, state: FailedCheck, subject: str) -> Event:
    """The event, with the line that has the message: that of the record, or one of the next lines."""
    near = range(line, min(line + _NEAR, len(lines)))
    place = next((number for number in near if state.message[:40] in lines[number]), line)
    return event_of_check(state, subject, part.cite(place, lines[place]))
