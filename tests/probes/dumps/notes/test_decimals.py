"""The digits behind a decimal point are no number of their own: "37.0 C" is not 0 C."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.probes.dumps.read import read_text

FIELDS = (
    ("1095 MHz of 1980 MHz, {} C", "temperature", 88.0),
    ("{} MHz of 1980.0 MHz", "clock", 1095e6),
    ("power limit {} W, default power limit 400.0 W", "power_limit", 250.0),
)


@pytest.mark.parametrize("digits", ["", ".0", ".5", ".00"])
@pytest.mark.parametrize(("text", "name", "value"), FIELDS)
def test_decimals(text: str, name: str, value: float, digits: str) -> None:
    number = f"{value / (1e6 if name == 'clock' else 1):.0f}{digits}"
    gpus = [one for one in read_text("a", f"GPU 2: {text.format(number)}\n", 0.0) if isinstance(one, Gpu)]
    assert {getattr(one, name) for one in gpus} - {None} == {value}
