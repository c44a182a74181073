"""The report of a text."""

from __future__ import annotations

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1795230000.0


def report_of(text: str, at: float = AT) -> Report:
    """Read and evaluate a text that was taken at the time `at`."""
    return evaluate(assemble(read_text("text", text, at), Site(), at, origin="dumps"))


def found_in(text: str) -> list[tuple[str, str, str]]:
    """Code, severity and subject of each finding of a text."""
    return [(one.code, one.severity, one.subject) for one in report_of(text).findings]
