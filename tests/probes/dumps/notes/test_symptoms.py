"""A text that tells of a freeze or a crash beside an event of a program is not ok: nothing in it shows the cause."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

XID = "[ 1399.140323] NVRM: Xid (PCI:0000:01:00): 32, Channel ID 00000009 intr 00800000\n"


@pytest.mark.parametrize(
    "said",
    [
        "The display freezes for some seconds, then it goes on.",
        "Now and then the whole machine crashes under load.",
        "After an hour it is frozen, and only a black screen is left.",
    ],
)
def test_a_symptom_without_a_cause(said: str) -> None:
    assert report_of(f"{said}\n\n{XID}").verdict == "unknown"


def test_without_a_symptom() -> None:
    assert report_of(XID).verdict == "ok"


@pytest.mark.parametrize("line", ["kdump: crash kernel memory reserved", "PM: Freezing user space processes ... done"])
def test_what_a_healthy_machine_logs(line: str) -> None:
    assert report_of(f"{line}\n{XID}").verdict == "ok"
