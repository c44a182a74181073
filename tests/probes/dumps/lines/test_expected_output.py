"""Outputs under "Expected output:" are those of a good machine, and no values of this one."""

from __future__ import annotations

import pytest

from linkgauge.probes.dumps.lines.expected_output import without_expected
from tests.support.texts import report_of

SHOWN = "LnkSta: Speed 32GT/s, Width x8 (downgraded)"


@pytest.mark.parametrize("heading", ["Expected output:", "**Sample output** for each port:", "Healthy values of it: "])
@pytest.mark.parametrize(
    "block", [SHOWN, f"\n{SHOWN}\nSecond: 2", f"```\n{SHOWN}\n\nSecond: 2\n```", f"\n~~~\n{SHOWN}\n~~~"]
)
def test_the_block_below_the_heading_is_left_out(heading: str, block: str) -> None:
    text = f"first\n{heading}\n{block}\n\nActual output:\nwidth x4"
    left = without_expected(text)
    assert left.count("\n") == text.count("\n")
    assert "LnkSta" not in left
    assert "Second" not in left
    assert left.startswith("first\n")
    assert left.endswith("\n\nActual output:\nwidth x4")


@pytest.mark.parametrize(
    "text",
    [
        f"Not the expected output:\n{SHOWN}",
        f"expected value: 16\n{SHOWN}",
        f"the output differs from the expected output:\n{SHOWN}",
        SHOWN,
    ],
)
def test_other_lines_stay(text: str) -> None:
    assert without_expected(text) == text


def test_what_is_left_out_is_a_gap() -> None:
    """The heading can also be above the own output. So the rest alone is not called healthy."""
    own = (
        "index, name, pcie.link.gen.current, pcie.link.width.current, pcie.link.width.max\n0, NVIDIA L40S, 4, 16, 16\n"
    )
    expected = "Expected output:\n\nindex, name, ecc.errors\n0, NVIDIA L40S, 0\n\nOutput:\n\n"
    assert report_of(own).verdict == "ok"
    report = report_of(expected + own)
    assert report.verdict == "unknown"
    assert "expected" in " ".join(one.detail for one in report.not_checked)
