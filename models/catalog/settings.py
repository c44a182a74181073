"""Settings of a machine, from settings.toml: location, format, and wanted value of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from ..report import Severity
from ..site.schema import Text
from . import load


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One setting. settings.toml defines the fields."""

    paths: tuple[str, ...] = ()
    read: Literal["word", "bracket", "number", "match", "entry", "bit", "exists", "variable", "tool"]
    entry: str = ""
    bit: int = 0
    optional: bool = False
    service: str = ""
    skip: dict[str, str] = {}
    where: tuple[str, ...] = ()
    context: Literal["any", "job"] = "any"
    only: dict[str, tuple[str, ...]] = {}
    unless: dict[str, tuple[str, ...]] = {}
    code: str | None = None
    severity: Severity = "info"
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    more_than: int | None = None
    at_most: int | None = None
    unit: str | None = None
    says: str = ""
    cause: str | None = None
    source: Text


@cache
def settings() -> Mapping[str, Row]:
    """All settings by name."""
    return load("settings.toml", dict[str, Row])
