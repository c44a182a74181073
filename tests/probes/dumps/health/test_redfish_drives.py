"""Drive resources of Redfish (health/redfish_drives.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.texts import found_in, report_of

DRIVE = {
    "@odata.id": "/redfish/v1/Systems/1/Storage/1/Drives/Bay7",
    "@odata.type": "#Drive.v1_17_0.Drive",
    "Id": "Bay7",
    "Name": "SSD of bay 7",
    "Status": {"State": "Enabled", "Health": "OK"},
    "FailurePredicted": False,
    "MediaType": "SSD",
}
FAILS = [("storage-degraded", "critical", "Bay7")]
CRITICAL = {"Status": {"State": "Enabled", "Health": "Critical"}}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("changes", [{"FailurePredicted": True}, CRITICAL])
def test_a_drive_that_fails(changes: dict[str, Any], indent: int | None) -> None:
    broken, other = DRIVE | changes, DRIVE | {"Id": "Bay8"}
    for value in (broken, [other, broken], {"Drives": [broken, other]}, {"Members": [{"Drives": [other, broken]}]}):
        assert found_in(json.dumps(value, indent=indent) + "\n") == FAILS


def test_the_evidence_is_the_line_of_the_drive() -> None:
    text = json.dumps([DRIVE | {"Id": "Bay8"}, DRIVE | {"FailurePredicted": True}], indent=2)
    (finding,) = report_of(text).findings
    assert [one.text for one in finding.evidence] == ['"FailurePredicted": true,']


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Status": {"State": "Enabled", "Health": "Warning"}},
        {"Status": {"State": "Absent"}},
        {"FailurePredicted": None},
        {"Status": {"State": "Enabled", "Health": None}},
    ],
)
def test_other_drives(changes: dict[str, Any]) -> None:
    assert found_in(json.dumps(DRIVE | changes, indent=2) + "\n") == []
