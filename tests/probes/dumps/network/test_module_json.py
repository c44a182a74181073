"""ethtool -m -j of CMIS modules: a flag has one value for each lane."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

FLAGS = tuple(
    f"laser_{what}_{side}_{grade}"
    for what in ("bias_current", "tx_power", "rx_power")
    for side in ("high", "low")
    for grade in ("alarm", "warning")
)


def text(on: dict[str, int]) -> str:
    """The members with the flags; those of `on` are set on one lane."""
    states = {name: ["true" if on.get(name) == lane else "false" for lane in range(4)] for name in FLAGS}
    return "".join(f'        "{name}": [ {",".join(lanes)} ],\n' for name, lanes in states.items())


def test_no_flag() -> None:
    assert report_of(text({})).findings == ()


@pytest.mark.parametrize("lane", range(4))
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_one_lane(name: str, lane: int) -> None:
    (found,) = report_of(text({name: lane})).findings
    assert (found.code, found.severity) == ("nic-optics", "warning")
    assert f"{name.replace('_', ' ')} on lane {lane + 1}" in found.message
