"""A state with one damaged letter is a gap, in outputs of any tool; names and ordinary words are none."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.lines.damaged_words import damaged_words
from linkgauge.probes.dumps.read import read_text

AT = 1.795e9
OUTPUTS = {
    "ACTIVE": "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n" * 2,
    "PORT_ACTIVE": "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n",
    "Active": "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n",
    "PASSED": "=== START OF READ SMART DATA SECTION ===\nSMART overall-health self-assessment test result: PASSED\n"
    "  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0\n",
}


@pytest.mark.parametrize("state", OUTPUTS)
def test_a_damaged_state_is_never_ok(state: str) -> None:
    for at in range(1, len(state)):
        for damaged in (state[:at] + "?" + state[at + 1 :], state[:at] + state[at + 1 :], f"{state[:at]}q{state[at:]}"):
            text = OUTPUTS[state].replace(state, damaged, 1)
            report = evaluate(assemble(read_text("dump.txt", text, AT), Site(), AT, origin="dumps"))
            assert report.verdict == "unknown", damaged


@pytest.mark.parametrize(
    "text",
    [
        "Enabled* Disabled* Enable Complete Connector inActive connected active health",
        "READS passed READ_ERROR ACTIVE_1 active2 Active: LinkUp, PORT_ACTIVE(4)",
        "user ALL=(ALL) NOPASSWD: ALL; PASSWD: ALL",
    ],
)
def test_other_words_are_no_damage(text: str) -> None:
    assert list(damaged_words(text)) == []
