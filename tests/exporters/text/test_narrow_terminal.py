"""Lines in a narrow terminal: no word is broken if it fits into a line of its own."""

from __future__ import annotations

from linkgauge.exporters.text.terminal import hanging


def test_words_go_below_a_long_title() -> None:
    text = "unnamed node  keep the node hgx-h100-8"
    for width in range(16, 80):
        for title in ("OK  ", "UNKNOWN, 2 checks not  ", "DEGRADED  "):
            lines = list(hanging(title, text, width, indent=4))
            words = {word for line in lines for word in line.split()}
            assert words >= set(text.split()), (width, lines)
