"""Records as lines of JSON, `["Pci", {...}]`. A child process answers its parent so, and captures store records so."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from .reason import Reason
from .records import NotChecked, Record
from .registry import RECORDS, kind_name


class _Missed(msgspec.Struct):
    """A NotChecked in a line. `why` is the complete text, so that versions without `reason` can read the line too."""

    what: str
    subject: str
    why: str
    how: str | None = None
    reason: str | None = None  # None: OTHER, and lines of versions without a reason
    path: str | None = None


def encode(record: Record) -> str:
    """One line without its line end. Fields that are None are left out."""
    fields = {
        name: value
        for name, value in msgspec.to_builtins(_missed(record) if isinstance(record, NotChecked) else record).items()
        if value is not None and (name, value) != ("cites", {})
    }
    return msgspec.json.encode([kind_name(type(record)), fields]).decode()


def decode(line: str | bytes) -> Record:
    """The record in one line. ValueError describes the defect of the line."""
    try:
        kind, fields = msgspec.json.decode(line, type=tuple[str, dict[str, object]])
        type_ = RECORDS[kind]
        record = msgspec.convert(fields, type=_Missed if type_ is NotChecked else type_)
    except KeyError as unknown:
        raise ValueError(f"no kind of fact is called {unknown}") from None
    except msgspec.DecodeError as error:  # ValidationError is a subclass
        raise ValueError(str(error)) from None
    return _not_checked(record) if isinstance(record, _Missed) else record


def _missed(one: NotChecked) -> _Missed:
    reason = None if one.reason is Reason.OTHER else one.reason.value
    return _Missed(one.what, one.subject, one.why, one.how, reason, one.path)


def _not_checked(line: _Missed) -> NotChecked:
    """Lines without a reason, and reasons of later versions, become OTHER."""
    reason = Reason.OTHER
    with suppress(ValueError):
        reason = Reason(line.reason)
    detail = line.why.removeprefix(f"{line.path}: ") if line.path else line.why
    path = line.path if detail != line.why else None
    return NotChecked(what=line.what, subject=line.subject, reason=reason, detail=detail, path=path, how=line.how)
