"""Capability and state of one link at different places of a text (pci/link_halves.py)."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.texts import found_in

CAPABLE = (
    "LnkCap: Port #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <16us",
    "LnkCap: Speed 16GT/s, Width x16",
    "LnkCap:\tPort #8, Speed 16GT/s, Width x16, ...",
)
NARROW = (
    "LnkSta: Speed 16GT/s, Width x4",
    "LnkSta:\tSpeed 16GT/s, Width x4, ...",
    "LnkSta: Speed 16GT/s, Width x4, TrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-",
    "LnkSta: Speed 16GT/s (ok), Width x4 (downgraded)",
)
WIDE = ("LnkSta: Speed 16GT/s, Width x16", "LnkSta: Speed 16GT/s (ok), Width x16 (ok)")
LAYOUTS = {
    "code blocks": "Our card shows\n\n```\n{c}\n```\n\nand then\n\n```\n{s}\n```\n",
    "the state first": "It runs at\n\n```\n{s}\n```\n\nand it is able to do\n\n```\n{c}\n```\n",
    "two kinds of blocks": "Look:\n```text\n    {c}\n```\nand:\n~~~\n    {s}\n~~~\n",
    "sentences": "lspci says `{c}`.\nBut the state is `{s}`.\n",
    "plain sentences": "lspci says {c}.\nBut the state is {s}.\n",
    "one sentence": "The card has `{c}` and `{s}`.\n",
    "list": "- capability: `{c}`\n- status: `{s}`\n",
    "numbered list": "1. {c}\n2. {s}\n",
    "quotes": "> {c}\n\nand\n\n> {s}\n",
    "table": "| what | line |\n|---|---|\n| capable | `{c}` |\n| now | `{s}` |\n",
    "paragraphs": "{c}\n\nThis is what it could do. What it does:\n\n{s}\n",
    "commands": "$ sudo lspci -vv | grep LnkCap:\n{c}\n$ sudo lspci -vv | grep LnkSta:\n{s}\n",
}
BLOCKS = LAYOUTS["code blocks"].format(c=CAPABLE[0], s=NARROW[0])


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_a_narrow_link_in_two_quotations(layout: str) -> None:
    for capable, state in product(CAPABLE, NARROW):
        found = found_in(layout.format(c=capable, s=state))
        assert [(code, severity) for code, severity, _ in found] == [("pcie-link-narrow", "critical")], (capable, state)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_a_whole_link_in_two_quotations(layout: str) -> None:
    assert not [found for pair in product(CAPABLE, WIDE) for found in found_in(layout.format(c=pair[0], s=pair[1]))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Our card shows", "The slot can do this:"),
        ("Our card shows", "On the healthy machine:"),
        ("and then", "and of another one:"),
        ("and then", "81:00.0 has:"),
        ("Width x4", "Width x4 (ok)"),
        ("Width x16", "Width x2"),
        ("Speed 16GT/s, Width x16", "Speed 8GT/s, Width x16"),
        ("and then", "and then\n" * 50),
    ],
)
def test_lines_that_can_be_of_two_devices(old: str, new: str) -> None:
    assert found_in(BLOCKS.replace(old, new)) == []


def test_an_address_before_the_capability() -> None:
    header = "0000:c1:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)\n\t"
    text = f"{header}{CAPABLE[0]}\n\nand its state\n\n```\n\t{NARROW[0]}\n```\n"
    assert found_in(text) == [("pcie-link-narrow", "critical", "0000:c1:00.0")]


def test_whole_outputs_stay_as_they_are() -> None:
    whole = f"0000:c1:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n\t{CAPABLE[1]}\n\t{WIDE[1]}\n"
    assert found_in(f"{whole}\n{BLOCKS}") == []
    assert found_in(f"{BLOCKS}\n```\n{whole}```\n") == []
