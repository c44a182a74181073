"""Markup around the lines of an output."""

from __future__ import annotations

import pytest

from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.lines.markup import without_markup


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("| GPU | GB/s |\n|---|---:|\n| 0 | **48.1** |", "GPU  GB/s\n\n0  48.1"),
        ("**Link 0:** 26.562 GB/s", "Link 0: 26.562 GB/s"),
        ("`Link 0: 26.562 GB/s`", "Link 0: 26.562 GB/s"),
        ("a 1  # slow?\nb 2   <--- here", "a 1\nb 2"),
        ("- a 1\n- b 2", "a 1\nb 2"),
        ("1:a\n2:b\n3:c", "a\nb\nc"),
        ("     7\ta\n     8\tb\n     9\tc", "a\nb\nc"),
        ("Pending : Yes    <===", "Pending : Yes"),
    ],
)
def test_markup_is_removed_and_evidence_cites_the_line_as_it_was(text: str, plain: str) -> None:
    found, before = without_markup(text)
    assert found == plain
    part = Part("f", 1, found, before=before)
    lines = text.split("\n")
    assert [part.cite(number, line).text for number, line in part.lines()] == [line.strip() for line in lines]


@pytest.mark.parametrize(
    "text",
    [
        "|   0  Tesla T4            Off  | 00000000:00:1E.0 Off |                    0 |",
        "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)",
        "node1:/tmp # lspci",
        "0: # nThread 1 nGpus 1",
        "==> /sys/class/infiniband/mlx5_0/ports/1/state <==",
        "Nov 21 03:00:00 node1 check[4242]: # nThread 1 nGpus 1",
        "Nov 21 03:00:00 # nThread 1 nGpus 1",
        '{"name": "a  # b"}',
        "Total no. of  available gpu #3",
        "- - - - - - - -\n[ ID] Interval",
        "0 26.1 N/A\n1 N/A 26.1",
        "************************************",
    ],
)
def test_outputs_with_such_signs_stay_as_they_are(text: str) -> None:
    assert without_markup(text) == (text, {})
