"""Records as lines of JSON, `["Pci", {...}]`. A child process answers its parent so, and captures store records so."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache

import msgspec
from msgspec.structs import replace

from .gpu import Driver, Gpu
from .reason import Reason
from .records import NotChecked, Record
from .registry import RECORDS, kind_name

# Earlier versions stored a timeout only as text. Without its reason, their capture of a hung driver would lose the
# finding. This version leaves out the reason OTHER only, and its timeouts never have that reason.
_TIMEOUT = re.compile(r"(?:.*: )?no answer within [0-9.e+]+ s|.*, asked before, still hangs in the kernel", re.DOTALL)


_OF_DRIVER = (Driver, Gpu)
_LINE = msgspec.json.Decoder(tuple[str, msgspec.Raw])


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
        kind, fields = _LINE.decode(line)
        record: Record | _Missed = _decoder(kind).decode(fields)
    except KeyError as unknown:
        raise ValueError(f"no kind of fact is called {unknown}") from None
    except msgspec.DecodeError as error:  # ValidationError is a subclass
        raise ValueError(str(error)) from None
    if isinstance(record, _Missed):
        return _not_checked(record)
    if isinstance(record, _OF_DRIVER) and record.failure_reason is None and _TIMEOUT.fullmatch(record.failure or ""):
        return replace(record, failure_reason=Reason.NO_ANSWER)
    return record


@cache
def _decoder(kind: str) -> msgspec.json.Decoder[Record | _Missed]:
    """The decoder of the fields of a kind of record."""
    type_ = RECORDS[kind]
    return msgspec.json.Decoder(_Missed if type_ is NotChecked else type_)


def _missed(one: NotChecked) -> _Missed:
    reason = None if one.reason is Reason.OTHER else one.reason.value
    return _Missed(one.what, one.subject, one.why, one.how, reason, one.path)


def _not_checked(line: _Missed) -> NotChecked:
    """Lines without a reason, and reasons of later versions, become OTHER, except timeouts of earlier versions."""
    reason = Reason.NO_ANSWER if line.reason is None and _TIMEOUT.fullmatch(line.why) else Reason.OTHER
    with suppress(ValueError):
        reason = Reason(line.reason)
    prefix = f"{line.path}: " if line.path else ""
    path = line.path if line.why.startswith(prefix) else None
    detail = line.why.removeprefix(prefix)
    return NotChecked(what=line.what, subject=line.subject, reason=reason, detail=detail, path=path, how=line.how)
