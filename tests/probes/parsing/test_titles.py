"""Titles of issues: those of faults state them with few words, those of wishes state nothing."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

FAULTS = (
    ("Node connected at 100Mb/s once VLAN enabled", "nic-rate-low"),
    ("Fabric manager not running after update of driver", "fabric-manager-down"),
)


@pytest.mark.parametrize(("title", "code"), FAULTS)
@pytest.mark.parametrize("tag", ["[BUG]", "[Bug]:", "# [BUG]", "# [Question]", "[Help wanted]", "Issue:"])
def test_faults(tag: str, title: str, code: str) -> None:
    assert [one.code for one in report_of(f"{tag} {title}\n").findings] == [code]


@pytest.mark.parametrize(("title", "code"), FAULTS)
@pytest.mark.parametrize("tag", ["[Feature]", "# [Feature request]", "# [Docs]", "Feature request:", "[RFC]"])
def test_wishes(tag: str, title: str, code: str) -> None:
    assert report_of(f"{tag} an alert when the {title}\n").findings == ()
