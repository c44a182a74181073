"""Sentences about the fabric manager, and what gpud says of machines that need none."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

GPUD = "✔ NVSwitch not detected, skipping fabric manager check\n"
MISSING = (
    "fabric manager is not active\n",
    "CUDA fails with system error 802 owing to lack of nvidia-fabricmanager\n",
    "The image lacks the fabric manager, so CUDA does not start.\n",
)


@pytest.mark.parametrize("text", MISSING)
def test_one_that_is_missing(text: str) -> None:
    assert [one.code for one in report_of(text).findings] == ["fabric-manager-down"]
    assert report_of(GPUD + text).findings == ()


def test_one_that_nothing_needs() -> None:
    assert report_of("The image for L4 lacks nvidia-fabricmanager, which is not needed there.\n").findings == ()
