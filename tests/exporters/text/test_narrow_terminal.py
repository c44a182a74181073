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


def test_a_long_title_leaves_no_narrow_column() -> None:
    title, text = f"OK for PCIe links of {'8 GPUs, ' * 8} ", "unnamed node  mi300x-8  keep the node"
    assert list(hanging(title, text, 100, indent=4)) == [title.rstrip(), f"    {text}"]
