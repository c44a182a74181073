"""What the driver's Xids mean, from xids.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from ..report import Severity
from ..site.schema import Text
from . import load


class Xid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One Xid, or several alike. Without a severity it is no fault of the node: a program or housekeeping causes it."""

    codes: tuple[int, ...]
    says: str
    severity: Severity | None = None
    action: str | None = None
    clears: Literal["gpu reset", "reboot", "nothing"] = "gpu reset"  # what makes it history
    recovery: bool = False  # the driver sets its recovery action with it: if that is "none", nothing is left to do
    state: str | None = None  # the field of a Gpu that says whether it still holds, and has a check of its own
    source: Text = "NVIDIA, Xid Errors (GPU deployment documentation), Xid catalog"


class _Xids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    xid: tuple[Xid, ...]


@cache
def xids() -> Mapping[int, Xid]:
    """The Xids by number. One that is not here is not known, and nothing is said of it."""
    rows = load("xids.toml", _Xids).xid
    return {code: row for row in rows for code in row.codes}
