"""What the SXids of NVSwitches mean, from sxids.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ..report import Severity
from ..site.schema import Text
from . import load


class Sxid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Several SXids that mean alike. Without a severity nothing is wrong, unless the log itself says "Fatal"."""

    codes: tuple[int, ...]
    says: str
    severity: Severity | None = None
    action: str | None = None
    ends: int | None = None  # the SXid that says that it is over
    source: Text = "NVIDIA, Fabric Manager User Guide, NVSwitch SXid errors"


class _Sxids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sxid: tuple[Sxid, ...]


@cache
def sxids() -> Mapping[int, Sxid]:
    """The SXids by number. Of one that is not here the log's own "Fatal" or "Non-fatal" decides."""
    rows = load("sxids.toml", _Sxids).sxid
    return {code: row for row in rows for code in row.codes}
