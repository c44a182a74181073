"""Drive resources of Redfish (DMTF DSP8010, Drive): a drive that predicts its failure, or whose health is critical."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.machine import Event
from ....models.facts.records import Record
from ..core.json_pieces import pieces
from ..core.part import Part

_PREDICTED, _TYPE = "FailurePredicted", "#Drive."
_LONGEST, _MOST = 1 << 21, 200  # characters; drives


def read_drives(part: Part) -> Iterator[Record]:
    """An event for each drive that fails."""
    if len(part.text) > _LONGEST or not (f'"{_PREDICTED}"' in part.text or _TYPE in part.text):
        return
    lines = part.text.split("\n")
    for outer, line in pieces(part, 0):
        for number, drive in enumerate(_drives(outer)):
            why, needle = _failure(drive)
            own = _name(drive)
            if why and own and number < _MOST:
                start = next((n for n in range(line, len(lines)) if f'{own}"' in lines[n]), line)
                place = next((n for n in range(start, len(lines)) if needle in lines[n]), line)
                yield _event(part, own, why, place, lines[place])


def _drives(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get(_PREDICTED), bool) or _TYPE in str(value.get("@odata.type")):
            yield value
        for inner in value.values():
            yield from _drives(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _drives(inner)


def _failure(drive: Mapping[str, Any]) -> tuple[str, str]:
    """What the resource says of a drive that fails, and the name of the field. Empty: the drive is healthy."""
    status = drive.get("Status")
    if drive.get(_PREDICTED) is True:
        return "its failure is predicted", f'"{_PREDICTED}"'
    if isinstance(status, dict) and status.get("Health") == "Critical":
        return "its health is critical", '"Health"'
    return "", ""


def _name(drive: Mapping[str, Any]) -> str:
    """The drive's own name in the controller's tree. Empty: the text does not have it."""
    return str(drive.get("Id") or drive.get("Name") or drive.get("@odata.id") or "").rpartition("/")[2]


def _event(part: Part, name: str, why: str, place: int, line: str) -> Event:
    subject = re.sub(r"[^\w.-]", "-", name)[:60]
    text = f"Redfish drive {subject}: {why}"
    cites = {"text": part.cite(place, line)}
    key = f"message {subject} redfish-drive-fails"
    return Event(key=key, kind="message", name="redfish-drive-fails", subject=subject, text=text, count=1, cites=cites)
