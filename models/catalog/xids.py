"""Meanings of the driver's Xids, from xids.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from ..report import Severity
from ..site.schema import Text
from . import load


class Xid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Xids with the same meaning. Without a severity they are no fault of the node: a program or housekeeping causes
    them.
    """

    codes: tuple[int, ...]
    says: str
    severity: Severity | None = None
    housekeeping: bool = False  # no program causes it
    action: str | None = None
    clears: Literal["gpu reset", "reboot", "nothing"] = "gpu reset"  # the action that makes it history
    recovery: int | None = None  # first driver release that sets a recovery action with it (catalog: Xid 154 linkage)
    state: str | None = None  # field of a Gpu that shows whether the error persists, and that has its own rule
    source: Text = "NVIDIA, Xid Errors (GPU deployment documentation), Xid catalog"


class _Xids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    xid: tuple[Xid, ...]


UNKNOWN = Xid(
    codes=(),
    says="an error that NVIDIA's catalog does not describe; its log line says more",
    severity="warning",
    action="look for the number in NVIDIA's current Xid catalog (https://docs.nvidia.com/deploy/xid-errors)",
)


@cache
def xids() -> Mapping[int, Xid]:
    """The rows by Xid. An Xid without a row is UNKNOWN."""
    rows = load("xids.toml", _Xids).xid
    return {code: row for row in rows for code in row.codes}
