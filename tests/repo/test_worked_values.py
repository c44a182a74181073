"""docs/worked-values.toml: linkgauge computes the numbers of the sources, or the page has the reason why not."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_each_number_of_the_sources_is_computed_or_its_difference_has_a_reason() -> None:
    spec = spec_from_file_location("worked_values", DOCS / "worked_values.py")
    assert spec
    assert spec.loader
    values = module_from_spec(spec)
    spec.loader.exec_module(values)
    rows = [row for section in values.sections() for row in section["row"]]
    assert len(rows) > 150
    for row in rows:
        ours = values.computed(row)
        assert (abs(ours / row["says"] - 1) > 0.01) == ("why" in row), (row["what"], ours)
