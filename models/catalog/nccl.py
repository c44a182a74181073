"""Known defects of NCCL versions, from nccl.toml."""

from __future__ import annotations

from functools import cache
from typing import Annotated

import msgspec

from ..site.schema import Text
from . import load

Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){1,2}$")]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One defect, its versions and its conditions. nccl.toml defines the fields."""

    since: Version = "0.0"
    before: Version
    fixed: Version | None = None
    gpus: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    across: bool = False
    network: Text | None = None
    unless: dict[str, Text] = {}
    says: Text
    workaround: Text
    source: Text

    def has(self, version: str) -> bool:
        """Whether this version has the defect."""
        return numbers(self.since) <= numbers(version) < numbers(self.before)


class _Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: tuple[Fault, ...]


@cache
def faults() -> tuple[Fault, ...]:
    """All known defects."""
    return load("nccl.toml", _Faults).fault


def numbers(version: str) -> tuple[int, ...]:
    """ "2.21.5" as (2, 21, 5). Text without a version becomes (), which sorts before every version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() and len(part) < 5 for part in parts) else ()
