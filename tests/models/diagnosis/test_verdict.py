"""The verdict: what only informs does not make an unseen machine ok."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from linkgauge.models.diagnosis.verdict import verdict
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked


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


def test_a_part_that_was_not_read_prevents_ok_and_hides_no_fault() -> None:
    gap = NotChecked(what="dump", subject="topo.xml", reason=Reason.INCOMPLETE, detail="left out")
    assert verdict((), {"nvlink-inactive": True}, "dumps", unread=[gap]) == "unknown"
    assert verdict((), {"nvlink-inactive": True}, "dumps", unread=[replace(gap, reason=Reason.UNREADABLE)]) == "ok"
