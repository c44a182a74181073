"""A recorded virtual machine with one H100: the hypervisor hides the links between the processor and the GPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.measuring.session import MeasurementOptions, Session
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.text.report import as_text
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import parse
from tests.support.paths import GOLDEN

RECORDED = Path(__file__).parent / "recorded" / "h100-guest.capture"


def report(text: str) -> Report:
    recorded = parse(text)
    return diagnose(recorded, SOURCES, Session(MeasurementOptions(), recorded).probes, Site()).report


def with_host_copies(factor: float) -> str:
    """The capture with slower copies between processor and GPU."""
    lines = RECORDED.read_text().splitlines()
    for number, line in enumerate(lines):
        if '"op":"copy"' in line and '"numa0","gpu0"' in line.replace('"gpu0","numa0"', '"numa0","gpu0"'):
            kind, fields = json.loads(line)
            if fields["quantity"] == "rate":
                fields["value"] *= factor
                lines[number] = json.dumps([kind, fields], separators=(",", ":"))
    return "\n".join(lines) + "\n"


def test_report(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "recorded_h100_guest.txt", as_text(replace(report(RECORDED.read_text()), runs=()), colour=False))


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ok"), (0.95, "ok"), (0.7, "unknown"), (0.25, "unknown")])
def test_copies_below_the_rate_of_the_product_are_not_ok(factor: float, verdict: str) -> None:
    """They may be by design: an AWS p5 has Gen4 x8 above a Gen5 x16 GPU."""
    found = report(with_host_copies(factor))
    assert found.verdict == verdict
    assert [one.code for one in found.findings] == ["pcie-topology-hidden"]
    gaps = [one for one in found.not_checked if one.what == "rate of copy" and one.subject != "numa0"]
    assert {one.subject for one in gaps} == ({"numa0-gpu0", "gpu0-numa0"} if verdict == "unknown" else set())
    assert all("gives 5" in one.detail and "are hidden" in one.detail for one in gaps if "reaches" in one.detail)
