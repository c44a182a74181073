"""What is known beforehand, as data: finding codes and machine types. The files are read when first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import msgspec

from ..report import Severity
from ..site.schema import Machine, Text
from ..site.toml_tables import read_tables

T = TypeVar("T")


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a finding code says, and what to do about it. codes.toml tells what each field means."""

    says: str
    severity: tuple[Severity, ...]  # the usual one first
    vital: bool  # wanted and not judged, the verdict is unknown
    steady: bool  # a state, said when it lasts; false: an event, said at once
    confirm: tuple[str, ...]  # commands, cheapest first; a sentence (it ends with a full stop) where no command helps
    fix: tuple[str, ...]  # steps, cheapest first
    source: Text


class _Platforms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    machine: tuple[Machine, ...]


@cache
def codes() -> Mapping[str, Code]:
    """Every finding code, in the order of the contract."""
    return load("codes.toml", dict[str, Code])


@cache
def machines() -> tuple[Machine, ...]:
    """The machine types, in the order in which they are to be tried."""
    return load("platforms.toml", _Platforms).machine


def load(name: str, kind: type[T]) -> T:
    """A file beside this one as `kind`. ValueError names the file, the table and the key that is wrong."""
    try:
        return read_tables(packaged(name), kind)
    except ValueError as wrong:
        raise ValueError(f"{name}: {wrong}") from None


def packaged(name: str) -> bytes:
    """A file beside this one. Not by importlib.resources, which takes more than 10 ms to import."""
    with open(f"{__path__[0]}/{name}", "rb") as file:
        return file.read()
