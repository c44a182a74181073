"""Values in the JSON of other tools, where one kind is expected and anything may stand."""

from __future__ import annotations

from typing import Any


def object_of(value: object) -> dict[str, Any]:
    """The value where it is an object; else one without members."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The value where it is a list; else an empty one."""
    return value if isinstance(value, list) else []
