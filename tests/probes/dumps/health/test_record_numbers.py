"""Counters in lines of logs: the number of a record of the firmware, and the entries of a disk's error log."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

RECORD = (
    "[ 2484.374025] {{{n}}}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 512\n"
    "[ 2484.374029] {{{n}}}[Hardware Error]: event severity: corrected\n"
    "[ 2484.374031] {{{n}}}[Hardware Error]:   section_type: {section}\n"
    "[ 2484.374033] {{{n}}}[Hardware Error]:   {device}: 0000:2{digit}:03.1\n"
)
SMART = "SMART overall-health self-assessment test result: PASSED\nCritical Warning: 0x00\nAvailable Spare: 100%\n"
LOG = "Aug 2 06:25:37 n1 smartd[1061]: Device: /dev/nvme{d}, number of Error Log entries increased from 0 to {n}\n"


@pytest.mark.parametrize("digit", [0, 3, 9])
@pytest.mark.parametrize(("section", "code"), [("PCIe error", "pcie-errors"), ("memory error", "host-memory-errors")])
def test_the_number_of_a_record_tells_how_many_there_were(section: str, code: str, digit: int) -> None:
    device = "device_id" if code == "pcie-errors" else "physical_address"
    for number in (50, 359, 70_000):
        found = found_in(RECORD.format(n=number, section=section, digit=digit, device=device))
        assert {one[:2] for one in found} == {(code, "warning")}
    for number in (1, 3, 49):
        found = found_in(RECORD.format(n=number, section=section, digit=digit, device=device))
        assert {one[:2] for one in found} == {(code, "info")}


@pytest.mark.parametrize("disk", [0, 2, 11])
def test_entries_of_an_error_log(disk: int) -> None:
    assert found_in(LOG.format(d=disk, n=2**64 - 1) + SMART) == []
    assert report_of(LOG.format(d=disk, n=2**64 - 1) + SMART).verdict == "ok"
    for number in (1, 14, 9000):
        assert [one[1] for one in found_in(LOG.format(d=disk, n=number) + SMART)] == ["info"]
