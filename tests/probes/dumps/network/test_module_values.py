"""ethtool -m: the flags of a module, and the values that they compare."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

LANES = range(1, 5)


def text(on: int | None, blanks: int) -> str:
    """A QSFP in the columns of ethtool. The lane `on` receives no light."""
    lines = []
    for lane in LANES:
        power = "0.0001 mW / -40.00 dBm" if lane == on else "0.9412 mW / -0.26 dBm"
        lines.append(f"\t{f'Rcvr signal avg optical power(Channel {lane})':<41} : {power}")
    for lane in LANES:
        flag = f"Laser rx power low alarm{' ' * blanks}(Channel {lane})"
        lines.append(f"\t{flag:<41} : {'On' if lane == on else 'Off'}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("blanks", range(1, 6))
@pytest.mark.parametrize("lane", LANES)
def test_the_lane_and_its_value(lane: int, blanks: int) -> None:
    (found,) = report_of(text(lane, blanks)).findings
    assert f"laser rx power low alarm channel {lane}" in found.message
    assert f"power channel {lane}: 0.0001 mW / -40.00 dBm" in found.message
    assert found.message.count("dBm") == 1


@pytest.mark.parametrize("blanks", range(1, 6))
def test_no_flag(blanks: int) -> None:
    report = report_of(text(None, blanks))
    assert (report.verdict, report.findings) == ("ok", ())
