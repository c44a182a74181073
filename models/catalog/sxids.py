"""Meanings of NVSwitch SXids, from sxids.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ..report import Severity
from ..site.schema import Text
from . import load


class Sxid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """SXids with the same meaning. Without a severity they are no fault, unless the log line contains "Fatal"."""

    codes: tuple[int, ...]
    says: str
    severity: Severity | None = None
    action: str | None = None
    ends: int | None = None  # the SXid that reports the end of this one
    source: Text = "NVIDIA, Fabric Manager User Guide, NVSwitch SXid errors"


class _Sxids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sxid: tuple[Sxid, ...]


@cache
def sxids() -> Mapping[int, Sxid]:
    """The rows by SXid. For unknown SXids the "Fatal" or "Non-fatal" in the log line decides."""
    rows = load("sxids.toml", _Sxids).sxid
    return {code: row for row in rows for code in row.codes}
