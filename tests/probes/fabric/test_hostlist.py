"""Lists of host names as Slurm writes them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.fabric.hostlist import MOST, expand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node[08-10,12]", ["node08", "node09", "node10", "node12"]),
        ("a,b[1-2]c,d", ["a", "b1c", "b2c", "d"]),
        ("r[1-2]n[3,5]", ["r1n3", "r1n5", "r2n3", "r2n5"]),
        ("", []),
    ],
)
def test_expand(text: str, expected: list[str]) -> None:
    assert expand(text) == expected


@pytest.mark.parametrize("text", ["n[1-999999999]", "n[1-500]m[1-500]", "n[]", "n[1-2-3]"])
def test_a_wrong_or_huge_list_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="range|more than"):
        expand(text)


@given(st.text(alphabet="n0123456789[],- ", max_size=40))
def test_any_text_gives_few_names_or_an_error(text: str) -> None:
    with suppress(ValueError):
        assert len(expand(text)) <= MOST
