"""A pasted text that ends within a matrix of rates between GPUs."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

_ONE, _BOTH = "Unidirectional P2P={} Bandwidth{} Matrix (GB/s)", "Bidirectional P2P={} Bandwidth{} Matrix (GB/s)"


def _matrix(title: str, count: int, rate: float, rows: int, peers: str = "Enabled", slow: int | None = None) -> str:
    lines = [title.format(peers, " (P2P Writes)" if "Uni" in title and peers == "Enabled" else "")]
    lines.append("   D\\D " + " ".join(f"{at:6}" for at in range(count)))
    for row in range(rows):
        cells = [
            1400.0 + row if row == at else rate * (0.92 if slow in (row, at) else 1) + (row + at) % 4 / 50
            for at in range(count)
        ]
        lines.append(f"{row:6} " + " ".join(f"{cell:6.2f}" for cell in cells))
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(("count", "rows"), [(6, 3), (8, 5), (8, 7)])
@pytest.mark.parametrize("slow", [None, 3])
def test_the_rest_of_a_second_matrix(count: int, rows: int, slow: int | None) -> None:
    """All pairs were measured before, so the missing rows are no reason to doubt them."""
    whole = _matrix(_ONE, count, 55.6, count, slow=slow)
    report = report_of(whole + _matrix(_BOTH, count, 110.9, rows, slow=slow))
    assert report.verdict == "ok"
    assert {one.severity for one in report.findings} <= {"info"}
    assert any("the output ends here" in one.why for one in report.not_checked)


@pytest.mark.parametrize(
    "text",
    [
        _matrix(_ONE, 8, 55.6, 5),
        _matrix(_ONE, 8, 55.6, 5) + _matrix(_BOTH, 8, 110.9, 4),
        _matrix(_ONE, 8, 21.3, 8, "Disabled") + _matrix(_ONE, 8, 55.6, 5),  # with peer access nothing is complete
        (_matrix(_ONE, 8, 55.6, 8) + _matrix(_BOTH, 8, 110.9, 4))[:-30],  # within a row
    ],
)
def test_pairs_are_missing(text: str) -> None:
    assert report_of(text).verdict == "unknown"
