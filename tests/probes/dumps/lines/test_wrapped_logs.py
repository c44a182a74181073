"""Lines of the kernel that a mail program wrapped say the same, also in a quote."""

from __future__ import annotations

import textwrap

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, entries, message
from linkgauge.models.facts.machine import Event
from linkgauge.probes.dumps.read import read_text

WIDTH = 72
STAMPS = ("[   12.345678] ", "Nov 27 13:16:56 node7 kernel: ")
LONG = sorted(
    {
        example
        for example in (message(entry.name).example for entry in entries(*KERNEL))
        if len(example) > WIDTH and " " in example[30:WIDTH] and "0000:" in example
    }
)


def said(text: str) -> set[tuple[str | None, str | None, str | None]]:
    return {(one.kind, one.name, one.subject) for one in read_text("mail.txt", text, 0.0) if isinstance(one, Event)}


@pytest.mark.parametrize("quote", ["", "> ", ">> "])
@pytest.mark.parametrize("stamp", STAMPS)
def test_a_wrapped_line_says_the_same(stamp: str, quote: str) -> None:
    assert len(LONG) > 20
    lost = []
    for example in LONG:
        line = stamp + example
        before, behind = f"{stamp}pci 0000:00:1f.0: [8086:a1c1] type 00\n", f"{stamp}usb 1-1: new device\n"
        parts = textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        wrapped = before + "\n".join(parts) + "\n" + behind
        if said(textwrap.indent(wrapped, quote)) != said(before + line + "\n" + behind):
            lost.append(example)
    assert lost == []
