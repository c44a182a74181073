"""TOML to structs. Errors name the table and the key as they are written in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import tomli

T = TypeVar("T")

_WHERE = re.compile(r" - at (?:`key` in )?`\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_UNKNOWN = re.compile("Object contains unknown field `(.*)`")
_MISSING = re.compile("Object missing required field `(.*)`")


def read_tables(text: str | bytes, kind: type[T]) -> T:
    """The struct that a TOML text holds. ValueError: "machine 3 (ours): gpuss: unknown key; did you mean gpus?"."""
    try:
        raw = tomli.loads(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:  # not TOML or not UTF-8: both errors are subclasses
        raise ValueError(str(error)) from None
    return in_tables(raw, kind)


def in_tables(raw: Any, kind: type[T]) -> T:
    """The struct from tables that are already parsed. ValueError as in `read_tables`."""
    if (path := _zero_byte(raw)) is not None:
        raise ValueError(": ".join((*_names(raw, path), "a text with a zero byte is no path, name or value")))
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as wrong:
        raise ValueError(_located(raw, kind, str(wrong))) from None


def _zero_byte(raw: Any) -> list[str | int] | None:
    """The keys and indexes of the first text with a zero byte. No path, variable or argument of Linux can have one."""
    todo: list[tuple[Any, list[str | int]]] = [(raw, [])]
    while todo:
        value, path = todo.pop()
        if isinstance(value, str) and "\0" in value:
            return path
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, one in inner:
            if isinstance(key, str) and "\0" in key:
                return path
            todo.append((one, [*path, key]))
    return None


def _refusal(raw: Any, kind: Any) -> str | None:
    """The error message of msgspec; None if the value is valid."""
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return None


def _located(raw: Any, kind: Any, wrong: str) -> str:
    """The message of msgspec, after the table and the key as written in the file."""
    where = _WHERE.search(wrong)
    what = wrong[: where.start()] if where else wrong
    path = list(_path(raw, kind, where[1] if where else "", wrong))
    names = _names(raw, path)
    if unknown := _UNKNOWN.fullmatch(what):
        from difflib import get_close_matches  # imported only on an error, like the module below: the import is slow

        similar = get_close_matches(unknown[1], _keys(kind, path), 1)
        names.append(unknown[1])
        what = f"unknown key; did you mean {similar[0]}?" if similar else "unknown key"
    elif missing := _MISSING.fullmatch(what):
        names.append(missing[1])
        what = "missing"
    else:
        what = what.replace("`", "")
        what = what[0].lower() + what[1:]
    return ": ".join((*names, what))


def _path(raw: Any, kind: Any, where: str, wrong: str) -> Iterator[str | int]:
    """The keys and indexes that lead to the error.

    For a table with arbitrary keys msgspec does not name the key. This function tries the values one by one and finds
    the key whose value is refused.
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
    """ "machine 3 (ours)", "bus_bandwidth", "all_reduce 1": tables of a list by number and name."""
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
    """The keys that a table at this position may have."""
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
