"""The catalog: knowledge as data, such as finding codes and machine types. Each file is read on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, TypeAlias, TypeVar

import msgspec

from ..report import Severity
from ..site.schema import Machine, Text
from ..site.toml_tables import read_tables

NOT_ENOUGH_EVIDENCE = "not-enough-evidence"  # the code of symptoms, which name no cause
T = TypeVar("T")
CostRule: TypeAlias = Literal[
    "links", "stops", "fabric", "switches", "port", "disk", "detour", "gdr", "peers", "compute", "none", "unknown"
]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One step of a repair, and the conditions under which it fits. codes.toml defines the fields."""

    do: str
    short: str | None = None
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The meaning of a finding code and its remedy. codes.toml defines the fields."""

    says: str
    severity: tuple[Severity, ...]  # the usual severity first
    vital: bool  # if wanted and not checked, the verdict is unknown
    steady: bool  # a state, reported when it lasts; false: an event, reported at once
    cost: CostRule
    confirm: tuple[str, ...]  # commands, cheapest first; or a sentence with a full stop, if no command exists
    of_outputs: str | None = None  # the code that reports of outputs have instead
    of_job: bool = False  # a job or its image has the fault, not the node
    fix: tuple[Step, ...]  # cheapest first
    source: Text


class _Platforms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    machine: tuple[Machine, ...]


@cache
def codes() -> Mapping[str, Code]:
    """All finding codes in the order of codes.toml."""
    return load("codes.toml", dict[str, Code])


@cache
def machines() -> tuple[Machine, ...]:
    """The machine types, in the order in which recognition tries them."""
    return load("platforms.toml", _Platforms).machine


def load(name: str, kind: type[T]) -> T:
    """A file of this package as `kind`. ValueError names the file, the table and the wrong key."""
    try:
        return read_tables(packaged(name), kind)
    except ValueError as wrong:
        raise ValueError(f"{name}: {wrong}") from None


def packaged(name: str) -> bytes:
    """The bytes of a file of this package. importlib.resources is not used: its import takes more than 10 ms."""
    with open(f"{__path__[0]}/{name}", "rb") as file:
        return file.read()
