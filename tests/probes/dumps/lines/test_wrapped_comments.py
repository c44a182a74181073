"""A sentence in a comment of several lines. Each line begins with the sign of the comment."""

from __future__ import annotations

import textwrap

import pytest

from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Record
from linkgauge.probes.dumps.read import read_text

AT = 1767225600.0
SAID = (
    "The launcher starts its ranks on the first card alone, because the other seven of the machine are in a state of "
    'which nvidia-smi says "GPU requires reset", and the library finds one device for all of them.',
    "This file sets the rate of the loader: one of the two adapters trained on x4 instead of x16 after the last move "
    "of the machine, and nobody has seen to it since.",
)


def messages(text: str) -> set[str | None]:
    records: list[Record] = list(read_text("launch.py", text, AT))
    return {one.name for one in records if isinstance(one, Event)}


@pytest.mark.parametrize("sign", ["# ", "    # ", "// ", " * ", "> ", "-- "])
@pytest.mark.parametrize("said", SAID)
def test_a_comment_says_what_its_sentence_says(said: str, sign: str) -> None:
    whole = messages(said)
    assert whole
    for width in (60, 72, 80, 100):
        comment = "\n".join(f"{sign}{line}" for line in textwrap.wrap(said, width - len(sign)))
        assert messages(f"def main():\n{comment}\n    return None\n") == whole, width
