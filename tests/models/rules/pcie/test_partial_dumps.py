"""Links below their own width in dumps that do not show the port above them."""

from __future__ import annotations

import json

import pytest

from tests.support.texts import found_in, report_of

HEADING = "Name               CurrentLinkWidth MaxLinkWidth"
ROW = "NVIDIA RTX A6000                 8           16"


def test_a_narrow_link_of_a_product_is_a_fault() -> None:
    assert found_in(f"{HEADING}\n{ROW}\n") == [("pcie-link-narrow", "critical", "text:2")]


@pytest.mark.parametrize("number", [2, 4, 8])
def test_equal_functions_that_are_all_narrow_are_not_ok(number: int) -> None:
    """A machine may be built so. The same row twice may also be one function, or a setting of all slots."""
    report = report_of("\n".join((HEADING, *[ROW] * (number - 1), "", "Again:", HEADING, ROW)) + "\n")
    assert {one.severity for one in report.findings} == {"info"}
    assert report.verdict == "unknown"


def test_equal_functions_at_their_full_width_have_no_finding() -> None:
    row = ROW.replace(" 8 ", "16 ")
    assert found_in("\n".join((HEADING, row, row)) + "\n") == []


def test_a_place_within_a_string_is_no_address() -> None:
    text = json.dumps({"stdout": f"{HEADING}\n{ROW}"})
    assert found_in(text) == [("pcie-link-narrow", "critical", "text:1.2")]
