"""What the driver's Xids mean, from xids.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ..report import Severity
from . import packaged


class Xid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One Xid. Without a severity it is no fault of the node: a program or the driver's housekeeping causes it."""

    code: int
    says: str
    severity: Severity | None = None
    action: str | None = None
    source: str = "NVIDIA, Xid Errors (GPU deployment documentation)"


class _Xids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    xid: tuple[Xid, ...]


@cache
def xids() -> Mapping[int, Xid]:
    """The Xids by number. One that is not here is not known, and nothing is said of it."""
    return {xid.code: xid for xid in msgspec.toml.decode(packaged("xids.toml"), type=_Xids).xid}
