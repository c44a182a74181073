"""An output that is in the text several times gives the findings of one copy."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.lines.repeats import once
from linkgauge.probes.dumps.read import read_text

AT = 1.795e9
LINK = (
    "\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\tLnkSta:\tSpeed 32GT/s, Width x4 (downgraded)\n"
)
COUNTERS = "     rx_crc_errors_phy: 4711\n     rx_symbol_err_phy: 815\n     link_down_events_phy: 12\n"


def found(text: str) -> list[tuple[str, str, str]]:
    report = evaluate(assemble(read_text("dump.txt", text, AT), Site(), AT, origin="dumps"))
    return [(one.severity, one.code, one.subject) for one in report.findings]


@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("text", [LINK, COUNTERS], ids=["link", "counters"])
def test_equal_copies_are_one_output(text: str, copies: int, between: str) -> None:
    assert found(text)
    assert found(between.join([text] * copies)) == found(text)


@pytest.mark.parametrize("text", [LINK, COUNTERS], ids=["link", "counters"])
def test_each_finding_is_there_once(text: str) -> None:
    assert len(found(text)) == len(set(found(text)))


def test_other_texts_stay_as_they_are() -> None:
    for text in ("", "\n", "a\n", "a\na\n", "a\nb\na\n", "a\nb\na\nc\n", LINK, LINK + COUNTERS):
        assert once(text) == text
    assert once("a\n\nb\n\na\nb") == "a\n\nb\n"


def test_equal_rows_and_equal_documents_are_several_results() -> None:
    for text in (
        "a 1\na 1\na 1\na 1\n",
        '{"rate": 1}\n{"rate": 1}\n',
        "{\n1\n}\n{\n1\n}\n",
    ):
        assert once(text) == text


@pytest.mark.parametrize(
    ("block", "copies"),
    [
        ("em0: link state changed to DOWN\nem0: link state changed to UP\n", 4),
        ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0 (channel:0 slot:0)\nmce: [Hardware Error]: Machine\n", 9),
        ("nvme nvme0: I/O 12 QID 3 timeout, aborting\nnvme nvme0: Abort status: 0x0\n", 3),
    ],
)
def test_equal_lines_of_a_log_are_several_events(block: str, copies: int) -> None:
    """The count of the events grows with the copies."""
    counts = []
    for text in (block, block * copies):
        facts = assemble(read_text("log.txt", text, AT), Site(), AT, origin="dumps").of(Event).values()
        counts.append(sum(one.count or 1 for one in facts))
    assert counts[1] > counts[0] > 0
