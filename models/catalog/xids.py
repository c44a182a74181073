"""What the driver's Xids mean, from xids.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from ..report import Severity


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
    text = (resources.files(__package__) / "xids.toml").read_text("utf-8")
    return {xid.code: xid for xid in msgspec.toml.decode(text, type=_Xids).xid}
