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


def listing(state: str, address: str = "1f:00.0") -> str:
    """A narrow function, and others with all their lanes: ports may be among them."""
    link = "    LnkCap: Speed 32GT/s, Width x16\n    LnkSta: Speed 32GT/s, {}\n"
    return (
        f"$ lspci -s {address} -vv | grep Lnk\n{link.format(state)}"
        f"$ lspci -s 08:00.0 -vv | grep Lnk\n{link.format('Width x16')}"
    )


@pytest.mark.parametrize("end", ["", "   # half", " \u274c"])
def test_a_function_alone_on_its_link_that_lspci_calls_narrow(end: str) -> None:
    report = report_of(listing(f"Width x8 (downgraded){end}"))
    assert [(one.code, one.severity, one.confidence) for one in report.findings] == [
        ("pcie-link-narrow", "warning", "possible")
    ]
    assert report.verdict == "degraded"


@pytest.mark.parametrize("address", ["00:1c.0", "1f:01.0", "00:00.0"])
def test_a_function_that_may_be_a_port_is_not_judged(address: str) -> None:
    report = report_of(listing("Width x8 (downgraded)", address))
    assert {one.severity for one in report.findings} == {"info"}
    assert report.verdict == "unknown"


@pytest.mark.parametrize(("lanes", "read"), [(4, True), (8, True), (2, True), (16, True), (1, False), (3, False)])
def test_a_width_at_the_end_of_the_text(lanes: int, read: bool) -> None:
    """Behind "x1" a digit can be missing."""
    report = report_of(f"LnkCap: Port #0, Speed 32GT/s, Width x32\nLnkSta: Speed 32GT/s, Width x{lanes}")
    assert [one.observed for one in report.findings] == ([lanes] if read else [])
    assert report.verdict == ("failed" if read else "unknown")


def test_ports_at_a_low_speed_are_not_ok() -> None:
    """An lspci of 2019 and before prints no "(downgraded)"."""
    text = "LnkCap: Port #0, Speed 32GT/s, Width x4, ASPM\nLnkSta: Speed 2.5GT/s, Width x4\n"
    report = report_of(f"{text}\n{text}")
    assert {(one.code, one.severity) for one in report.findings} == {("pcie-link-slow", "info")}
    assert report.verdict == "unknown"


def test_functions_with_addresses_at_a_low_speed_are_not_ok() -> None:
    """GPUs at rest look like this, so it is no finding."""
    row = "0000:{}:00.0 x16/x16 2.5 GT/s/16.0 GT/s\n"
    report = report_of(row.format("41") + row.format("61"))
    assert {one.subject for one in report.not_checked} == {"0000:41:00.0", "0000:61:00.0"}
    assert report.findings == ()
    assert report.verdict == "unknown"


def test_a_gpu_with_few_lanes_and_an_unknown_maximum_is_not_ok() -> None:
    report = report_of("GPU: 3\n    PCIE:\n        WIDTH: 8\n        SPEED: 16 GT/s\n        REPLAY_COUNT: 0\n")
    assert report.findings == ()
    assert report.verdict == "unknown"
