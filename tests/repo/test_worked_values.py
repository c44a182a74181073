"""docs/worked-values.toml: linkgauge computes the numbers of the sources, or the page has the reason why not."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import tomli

DOCS = Path(__file__).parents[2] / "docs"


def test_each_number_of_the_sources_is_computed_or_its_difference_has_a_reason() -> None:
    spec = spec_from_file_location("generate", DOCS / "generate.py")
    assert spec
    assert spec.loader
    generate = module_from_spec(spec)
    spec.loader.exec_module(generate)
    sections = tomli.loads((DOCS / "worked-values.toml").read_text(encoding="utf-8"))["section"]
    rows = [row for section in sections for row in section["row"]]
    assert len(rows) > 150
    for row in rows:
        ours = generate.computed(row["run"], row["at"]) / generate.UNITS.get(row["unit"], 1)
        assert (abs(ours / row["says"] - 1) > 0.01) == ("why" in row), (row["what"], ours)
