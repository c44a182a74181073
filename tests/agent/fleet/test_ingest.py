"""Any file among reports gives its rows or is skipped with a reason."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.exporters.formats.json import as_json
from tests.support.screens import screen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("pyarrow"), reason="the extra [fleet] is not installed"),
]


@cache
def small() -> dict[str, Any]:
    """The JSON of a report with few values, so that a random place is one that matters."""
    whole = json.loads(as_json(screen("pcie")))
    return {
        **{key: whole[key] for key in ("schema", "node", "taken_at", "source", "profile", "verdict", "findings")},
        "coverage": {"corroborated": {}, "uncorroborated": whole["coverage"]["uncorroborated"][:2]},
        "levels": [{"op": "copy", "ends": ["numa0", "gpu0"], "observed": 5e10}],
        "topology": {"devices": whole["topology"]["devices"][42:50], "links": whole["topology"]["links"][-3:]},
        "not_checked": whole["not_checked"],
    }


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters()),
    st.just([]),
    st.just({}),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The document with another value at the path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def outcome(folder: Path, content: bytes) -> tuple[int, int]:
    """The number of files of rows, and of skipped reports."""
    from linkgauge.agent.fleet.ingest import ingest

    file = folder / "report.json"
    file.write_bytes(content)
    rows, skipped = ingest([str(file)], str(folder))
    for one in rows:
        Path(one).unlink()
    return len(rows), len(skipped)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_report_with_another_value(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places(small())))
    content = json.dumps(changed(small(), path, data.draw(VALUES))).encode()
    assert sum(outcome(tmp_path_factory.getbasetemp(), content)) == 1


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    assert outcome(tmp_path_factory.getbasetemp(), content) == (0, 1)


def test_the_report_itself(tmp_path: Path) -> None:
    assert outcome(tmp_path, json.dumps(small()).encode()) == (1, 0)
    assert outcome(tmp_path, b'{"schema": "linkgauge.report/2"}') == (0, 1)
