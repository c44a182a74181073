"""mlxlink -m: each value outside of its range and each flag that is set is named."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

RANGES = {
    "Temperature [C]": ("49", "-10..80", "92"),
    "Voltage [mV]": ("3290.1", "3100..3500", "2900.5"),
    "Bias Current [mA]": ("9.21,9.26,9.05,9.14", "7..11", "9.21,9.26,1.05,9.14"),
    "Rx Power Current [dBm]": ("1.94,1.89,2.16,2.02", "-5..4", "1.94,1.89,2.16,-12.4"),
    "Tx Power Current [dBm]": ("0.86,1.13,1.01,1.06", "-3.5..4", "-40,1.13,1.01,1.06"),
}
FLAGS = ("Tx Fault", "Tx LOS", "Tx CDR LOL", "Rx LOS", "Rx CDR LOL", "Tx Adaptive EQ Fault")


def text(values: dict[str, str] | None = None, flags: dict[str, str] | None = None) -> str:
    lines = ["Operational Info", "----------------", f"{'State':35}: Active", "", "Module Info", "-----------"]
    lines += [f"{name:35}: {(values or {}).get(name, good)} [{span}]" for name, (good, span, _) in RANGES.items()]
    lines += [f"{f'{name} [per lane]':35}: {(flags or {}).get(name, '0,0,0,0')}" for name in FLAGS]
    return "\n".join(lines) + "\n"


def test_a_module_within_its_ranges() -> None:
    assert (report_of(text()).verdict, report_of(text()).findings) == ("ok", ())


@pytest.mark.parametrize("name", RANGES)
def test_a_value_outside_of_its_range(name: str) -> None:
    (found,) = report_of(text({name: RANGES[name][2]})).findings
    assert (found.code, found.severity) == ("nic-optics", "warning")
    assert name in found.message


@pytest.mark.parametrize("lane", range(4))
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_a_lane(name: str, lane: int) -> None:
    states = ",".join("1" if number == lane else "0" for number in range(4))
    (found,) = report_of(text(flags={name: states})).findings
    assert found.code == "nic-optics"
    assert f"{name} on lane {lane + 1}" in found.message
