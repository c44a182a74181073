"""Log lines that stand for many: the kernel left messages out, or rsyslog wrote equal lines once."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

AT = "0000:53:00.0"
ERROR = f"[ 10.5] nvidia {AT}: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)\n"
RECEIVED = f"pcieport 0000:52:01.0: AER: Corrected error received: {AT}"


@pytest.mark.parametrize(
    ("text", "verdict", "expected"),
    [
        (ERROR, "ok", [("pcie-errors", "info", AT)]),
        ("[ 9.5] aer_ratelimit: 37 callbacks suppressed\n", "unknown", [("pcie-errors", "info", "node")]),
        ("[ 9.5] aer_ratelimit: 2137 callbacks suppressed\n", "degraded", [("pcie-errors", "warning", "node")]),
        ("aer_ratelimit: 2137 callbacks suppressed\n", "degraded", [("pcie-errors", "warning", "node")]),
        (
            "[ 9.5] pcieport 0000:52:01.0: AER: 37 callbacks suppressed\n",
            "unknown",
            [("pcie-errors", "info", "0000:52:01.0")],
        ),
        (ERROR + "[ 11.5] aer_ratelimit: 37 callbacks suppressed\n", "unknown", [("pcie-errors", "info", AT)]),
        (ERROR + "[ 11.5] aer_ratelimit: 2137 callbacks suppressed\n", "degraded", [("pcie-errors", "warning", AT)]),
        ("[ 9.5] net_ratelimit: 2137 callbacks suppressed\n", "unknown", []),
        (
            f"Nov 23 10:00:09 n1 kernel: message repeated 2143 times: [ {RECEIVED}]\n",
            "degraded",
            [("pcie-errors", "warning", AT)],
        ),
        (
            f"Nov 23 10:00:09 n1 kernel: message repeated 2 times: [ {RECEIVED}]\n",
            "ok",
            [("pcie-errors", "info", AT)],
        ),
    ],
)
def test_lines_that_stand_for_many(text: str, verdict: str, expected: list[tuple[str, str, str]]) -> None:
    assert (report_of(text).verdict, found_in(text)) == (verdict, expected)
