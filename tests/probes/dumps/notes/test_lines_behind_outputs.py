"""Lines of an unknown kind beside the output of a tool: one that may name a fault is never ok."""

from __future__ import annotations

import pytest

from tests.support.dump_samples import SAMPLES
from tests.support.texts import report_of

HEALTHY = {
    "gpustat": (SAMPLES / "gpu_tools/gpustat/l40s.txt").read_text(),
    "topology": (SAMPLES / "host/numactl/numactl.txt").read_text(),
}
FAULTS = (
    "foo 0000:3b:00.0: link training failed",
    "mytool: GPU 3 FAILED selftest",
    "selftest of port 2: timed out",
    "E: device 4 is stuck",
    "the transceiver overheats",
)
NO_FAULTS = (
    "check 3 ... no errors found",
    "0 errors",
    "end of report",
    "Thanks, this is the output that you asked for.",
    "selftest of port 2: passed",
)


@pytest.mark.parametrize("tool", HEALTHY)
def test_the_output_alone_is_ok(tool: str) -> None:
    assert report_of(HEALTHY[tool]).verdict == "ok"


@pytest.mark.parametrize("tool", HEALTHY)
@pytest.mark.parametrize("line", FAULTS)
@pytest.mark.parametrize("first", [True, False])
def test_a_line_that_may_name_a_fault_prevents_ok(tool: str, line: str, first: bool) -> None:
    text = f"{line}\n\n{HEALTHY[tool]}" if first else f"{HEALTHY[tool]}\n{line}\n"
    report = report_of(text)
    assert report.verdict != "ok"
    assert report.findings or any("may name a fault" in (one.detail or "") for one in report.not_checked)


@pytest.mark.parametrize("tool", HEALTHY)
@pytest.mark.parametrize("line", NO_FAULTS)
@pytest.mark.parametrize("first", [True, False])
def test_other_lines_do_not(tool: str, line: str, first: bool) -> None:
    text = f"{line}\n\n{HEALTHY[tool]}" if first else f"{HEALTHY[tool]}\n{line}\n"
    assert report_of(text).verdict == "ok"
