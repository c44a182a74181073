"""Sentences about the fabric manager, and what gpud says of machines that need none."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

GPUD = "✔ NVSwitch not detected, skipping fabric manager check\n"
MISSING = (
    "fabric manager is not active\n",
    "CUDA fails with system error 802 owing to lack of nvidia-fabricmanager\n",
    "The fabric manager is down, no need to panic.\n",
    "The fabric manager crashed and there is no need to reboot the node.\n",
)


@pytest.mark.parametrize("text", MISSING)
def test_one_that_is_missing(text: str) -> None:
    assert [one.code for one in report_of(text).findings] == ["fabric-manager-down"]
    (found,) = report_of(GPUD + text).findings
    assert (found.code, found.severity) == ("fabric-manager-down", "info")
    assert "gpud found no NVSwitch" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "On L4 nvidia-fabricmanager is not running, which is not needed there.",
        "We lack a fabric manager dashboard.",
        "Lack of the fabric manager was the reason, it is installed now.",
    ],
)
def test_one_that_nothing_needs(text: str) -> None:
    assert report_of(text + "\n").findings == ()


def test_one_that_finds_no_switch() -> None:
    title = "# The fabric manager failed to start on our server with NV_WARN_NOTHING_TO_DO\n"
    log = (
        "Nov 15 14:15:47 n7 nv-fabricmanager[4177]: request to query NVSwitch device information from NVSwitch driver "
        "failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\n"
    )
    report = report_of(title + log)
    found = {(one.code, one.severity) for one in report.findings}
    assert found <= {("not-enough-evidence", "info"), ("fabric-manager-down", "info")}
    assert ("not-enough-evidence", "info") in found
    assert report.verdict == "unknown"
