"""Values that sentences quote: in any sentence that states them they are facts, and never evidence of health."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.lines.code_spans import with_spans_as_lines
from linkgauge.probes.dumps.read import read_text

AT = 1767225600.0
FAULTS = (
    ("HW Thermal Slowdown : Active", "gpu-throttled"),
    ("HW Power Brake Slowdown: Active", "gpu-throttled"),
    ("Remapping Failure Occurred : Yes", "gpu-row-remap"),
    ("LnkCap: Speed 16GT/s, Width x16` and `LnkSta: Speed 16GT/s, Width x8 (downgraded)", "pcie-link-narrow"),
    ("LnkCap: 32GT/s x4` and `LnkSta: 32GT/s x2 (downgraded)", "pcie-link-narrow"),
    ("LnkCap 16GT/s x8` and `LnkSta 16GT/s x1", "pcie-link-narrow"),
)
HEALTHY = ("HW Thermal Slowdown : Not Active", "Remapping Failure Occurred : No", "Link detected: yes")
STATED = (
    "On our node the tool says `{}` since the last reboot, and the job is slow.",
    "- the card of node 4 shows `{}` in the output of today",
    "| the second card | it is in the slot of the riser and shows `{}` | slow |",
    "We looked at the output of the card:\nit shows `{}` under load.",
)
NOT_STATED = (
    "If the tool says `{}`, switch the node off and reseat the card.",
    "The manual explains that `{}` stands for a card in a wrong slot.",
    "It was `{}` until we replaced the riser, and it works now.",
)


def report(text: str) -> Report:
    return evaluate(assemble(list(read_text("note.md", text, AT)), Site(), AT, origin="dumps"))


def faults(text: str) -> set[str]:
    return {one.code for one in report(text).findings if one.severity != "info"}


@pytest.mark.parametrize("frame", STATED)
@pytest.mark.parametrize(("quote", "code"), FAULTS)
def test_stated(quote: str, code: str, frame: str) -> None:
    assert code in faults(frame.format(quote))


@pytest.mark.parametrize("frame", NOT_STATED)
@pytest.mark.parametrize("quote", [quote for quote, _ in FAULTS if " and " not in quote])
def test_not_stated(quote: str, frame: str) -> None:
    assert faults(frame.format(quote)) == set()


@pytest.mark.parametrize("frame", [*STATED, *NOT_STATED])
@pytest.mark.parametrize("quote", HEALTHY)
def test_a_quote_is_no_evidence_of_health(quote: str, frame: str) -> None:
    assert report(frame.format(quote)).verdict == "unknown"


def test_the_sentence_names_the_gpu() -> None:
    (found,) = report("The tool says `HW Thermal Slowdown : Active` for GPU 3 under load.").findings
    assert found.subject == "gpu3"
    assert found.evidence[0].source == "note.md:1"


def test_lines_of_programs_have_no_quotes() -> None:
    for text in ('{"state": "up", "rate": 3}', '  "name": "gpu0",', "x = `date`", 'error: "foo: bar"'):
        assert with_spans_as_lines(text) is None
