"""TOML into structs, and what is wrong with it in the words of whoever wrote it: which table, which key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_WHERE = re.compile(r" - at (?:`key` in )?`\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_UNKNOWN = re.compile("Object contains unknown field `(.*)`")
_MISSING = re.compile("Object missing required field `(.*)`")


def read_tables(text: str | bytes, kind: type[T]) -> T:
    """The struct that a TOML text holds. ValueError: "machine 3 (ours): gpuss: unknown key; did you mean gpus?"."""
    try:
        raw = msgspec.toml.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as broken:  # not TOML (DecodeError is one), or not UTF-8
        raise ValueError(str(broken)) from None
    return in_tables(raw, kind)


def in_tables(raw: Any, kind: type[T]) -> T:
    """The struct that tables hold which were read already, whatever wrote them. ValueError as `read_tables`."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as wrong:
        raise ValueError(_told(raw, kind, str(wrong))) from None


def _refusal(raw: Any, kind: Any) -> str | None:
    """What msgspec has against it."""
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return None


def _told(raw: Any, kind: Any, wrong: str) -> str:
    """What msgspec says, with the table and the key in front, as they are called in the file."""
    where = _WHERE.search(wrong)
    what = wrong[: where.start()] if where else wrong
    path = list(_path(raw, kind, where[1] if where else "", wrong))
    names = _names(raw, path)
    if unknown := _UNKNOWN.fullmatch(what):
        from difflib import get_close_matches  # for a mistake alone, as below: they take a while to import

        alike = get_close_matches(unknown[1], _keys(kind, path), 1)
        names.append(unknown[1])
        what = f"unknown key; did you mean {alike[0]}?" if alike else "unknown key"
    elif missing := _MISSING.fullmatch(what):
        names.append(missing[1])
        what = "missing"
    else:
        what = what.replace("`", "")
        what = what[0].lower() + what[1:]
    return ": ".join((*names, what))


def _path(raw: Any, kind: Any, where: str, wrong: str) -> Iterator[str | int]:
    """The keys and numbers that lead there.

    Of a table with keys of any name, msgspec does not say which: it is the one that is refused alone too.
    """
    here = raw
    for step in _STEP.finditer(where):
        key: str | int | None = int(step[2]) if step[2] else step[1]
        if key is None:
            key = next((name for name in tuple(here) if _refused_alone(raw, kind, here, name, wrong)), None)
        if key is None:
            return
        yield key
        here = here[key]


def _refused_alone(raw: Any, kind: Any, here: dict[str, Any], name: str, wrong: str) -> bool:
    everything = dict(here)
    here.clear()
    here[name] = everything[name]
    refusal = _refusal(raw, kind)
    here.clear()
    here.update(everything)
    return refusal == wrong


def _names(raw: Any, path: list[str | int]) -> list[str]:
    """ "machine 3 (ours)", "bus_bandwidth", "all_reduce 1": tables of a list by number and by what they are called"""
    names: list[str] = []
    here = raw
    for key in path:
        here = here[key]
        if isinstance(key, str):
            names.append(key)
            continue
        called = here.get("name") if isinstance(here, dict) else None
        names[-1] += f" {key + 1}" + (f" ({called})" if isinstance(called, str) else "")
    return names


def _keys(kind: Any, path: list[str | int]) -> list[str]:
    """The keys that a table at this place may have."""
    from msgspec import inspect

    here: Any = inspect.type_info(kind)
    for key in path:
        if isinstance(here, inspect.StructType):
            here = next(field.type for field in here.fields if field.name == key)
        elif isinstance(here, inspect.DictType):
            here = here.value_type
        else:
            here = getattr(here, "item_type", here)
        if isinstance(here, inspect.Metadata):
            here = here.type
    return [field.name for field in here.fields] if isinstance(here, inspect.StructType) else []
