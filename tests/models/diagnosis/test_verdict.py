"""The verdict: what only informs does not make an unseen machine ok."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from linkgauge.models.diagnosis.verdict import verdict


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ({}, "unknown"),
        ({"firmware-mixed": True}, "unknown"),
        ({"firmware-mixed": True, "gpu-ecc": False}, "unknown"),
        ({"firmware-mixed": True, "gpu-ecc": True}, "ok"),
    ],
)
def test_a_dump_that_could_show_no_fault_is_unknown(checks: Mapping[str, bool], expected: str) -> None:
    assert verdict((), checks, "dumps") == expected
