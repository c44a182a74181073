"""A machine type as TOML for a site file."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import tomli_w

from ...models.site.schema import Machine

FROM_NODE = """\
# A machine type for the site file (docs/operate/site-file.md): what nodes of this kind should have.
# It is written from one node: errors of that node are errors here.
# Read it before you use it. Delete values that may differ between nodes of this kind.

"""
FROM_FLEET = """\
# Machine types for the site file (docs/operate/site-file.md): the values on which most nodes of a fleet agree.
# A fault that most nodes have is a value here. Read it before you use it.

"""
_ARRAY = re.compile(r"\[\n((?:    .+,\n)+)\]")
_WIDTH = 100  # columns of an array in one line


class _Rate(float):
    """Bytes per second, written in TOML as 12.5e9."""

    def __str__(self) -> str:
        text = f"{self / 1e9:.12g}e9"
        return text if self >= 1e6 and float(text) == self else repr(self)


def as_toml(machine: Machine) -> str:
    """One [[machine]] table with the keys that have values, in the order of the schema."""
    known = {
        name: value for name in machine.__struct_fields__ if (value := getattr(machine, name)) not in (None, (), {})
    }
    plain: dict[str, Any] = _readable(msgspec.to_builtins(known))
    plain["rates"] = [{name: value for name, value in rate.items() if value != ""} for rate in plain.pop("rates", ())]
    if not plain["rates"]:
        del plain["rates"]
    return _ARRAY.sub(_in_a_line, tomli_w.dumps({"machine": [plain]}))


def _readable(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _readable(value) for key, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [_readable(value) for value in plain]
    return _Rate(plain) if isinstance(plain, float) else plain


def _in_a_line(array: re.Match[str]) -> str:
    line = ", ".join(item.strip().removesuffix(",") for item in array[1][:-1].split("\n"))
    return f"[{line}]" if len(line) < _WIDTH else array[0]
