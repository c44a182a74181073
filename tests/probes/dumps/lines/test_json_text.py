"""Halves of characters in JSON: they end no reader, and positions in the text stay."""

from __future__ import annotations

import json

import pytest

from linkgauge.probes.dumps.core.key_values import entry
from linkgauge.probes.dumps.lines.json_text import loads, whole_characters

HALVES = (r"\ud800", r"\uDBFF", r"\udc00", r"\uDFFF", r"\ud800\ud800", r"\udc00\ud83d")


@pytest.mark.parametrize("half", HALVES)
def test_a_half_of_a_character_is_replaced(half: str) -> None:
    text = json.dumps({"ifname": "eth"}).replace("eth", f"eth{half}x")
    assert len(whole_characters(text)) == len(text)
    loads(text)["ifname"].encode()


def test_other_escapes_stay() -> None:
    text = r'["\ud83d\ude00", "\u00e9", "\\n"]'
    assert loads(text) == json.loads(text)


@pytest.mark.parametrize(("levels", "fits"), [(1, True), (200, True), (201, False), (900, False), (100_000, False)])
def test_documents_have_at_most_200_levels(levels: int, fits: bool) -> None:
    text = "[" * levels + "]" * levels
    if fits:
        assert loads(f" {text}\n") == json.loads(text)
    else:
        with pytest.raises(ValueError, match="nested in more than 200 levels"):
            loads(text)
    wide = json.dumps([{"a": [n]} for n in range(levels // 100)])
    assert loads(wide) == json.loads(wide)


def test_only_one_document() -> None:
    with pytest.raises(ValueError, match="more text"):
        loads("{} {}")


@pytest.mark.parametrize("run", [" ", "*", '"', "'", "."])
def test_a_long_run_inside_a_line_ends(run: str) -> None:
    """A line of 230 blanks took 8 s of a processor."""
    assert entry(f"Physical state{run * 40}: ETH_{run * 290}AN_FSM_ENABLE") is not None
