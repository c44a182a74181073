"""The rows that describe simple tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkgauge.probes.dumps.benchmarks
from linkgauge.probes.dumps.core.tables import Tool


def _tools() -> Iterator[tuple[str, Tool]]:
    package = linkgauge.probes.dumps.benchmarks
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Tool):
                yield module.name.rpartition(".")[2], value


ROWS = [(name, tool, row) for name, tool in _tools() for row in tool.rows]


@pytest.mark.parametrize(("tool", "row"), [one[1:] for one in ROWS], ids=[one[0] for one in ROWS])
@given(data=st.data())
def test_each_unit_of_a_row_has_a_factor(tool: Tool, row: str, data: st.DataObject) -> None:
    """A unit without a factor ended the reader with KeyError: qperf prints "bytes" below 1 kB."""
    text = data.draw(st.from_regex(row, fullmatch=True))
    found = re.fullmatch(row, text)
    assert found
    assert found.groupdict().get("unit", "") in tool.units or ("unit" not in found.groupdict() and "unit" in tool.needs)
