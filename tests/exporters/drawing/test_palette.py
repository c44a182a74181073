"""The colours of pictures: readable, and different for readers with any kind of colour blindness."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest

from linkgauge.exporters.drawing.palette import DARK, HEAT, LIGHT, STATES

_LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3, for text
_COLOURED = [state for state in STATES if state != "unread"]  # unread is dotted as well
_LEAST_HEAT_DISTANCE = 15.0
_LEAST_DISTANCE = 25.0  # CIE 1976; about 2.3 is just noticeable
# Machado, Oliveira, Fernandes 2009, severity 1.0, for linear RGB.
_BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_TO_XYZ = np.array(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))  # IEC 61966-2-1
_WHITE = _TO_XYZ @ np.ones(3)


def _linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    ratios = np.clip(_TO_XYZ @ np.clip(linear, 0, 1), 0, None) / _WHITE
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array((116 * y - 16, 500 * (x - y), 200 * (y - z)))


def _contrast(one: str, two: str) -> float:
    low, high = sorted(float((_TO_XYZ @ _linear(colour))[1]) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_are_readable_on_each_background(palette: Mapping[str, str]) -> None:
    for colour in ("text", "soft", *STATES):
        for back in ("back", "panel"):
            assert _contrast(palette[colour], palette[back]) >= _LEAST_CONTRAST, (colour, back)
    for back in HEAT:
        assert _contrast(palette["text"], palette[back]) >= _LEAST_CONTRAST, back


@pytest.mark.parametrize("blindness", _BLINDNESS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_low_rates_differ_from_all_others(palette: Mapping[str, str], blindness: str) -> None:
    matrix = np.array(_BLINDNESS[blindness])
    low, *others = (_lab(matrix @ _linear(palette[name])) for name in HEAT)
    assert all(np.linalg.norm(low - other) >= _LEAST_HEAT_DISTANCE for other in others)


@pytest.mark.parametrize("blindness", _BLINDNESS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_states_differ_for_every_reader(palette: Mapping[str, str], blindness: str) -> None:
    matrix = np.array(_BLINDNESS[blindness])
    for one, two in combinations(_COLOURED, 2):
        distance = np.linalg.norm(_lab(matrix @ _linear(palette[one])) - _lab(matrix @ _linear(palette[two])))
        assert distance >= _LEAST_DISTANCE, (one, two, float(distance))


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_only_rates_below_their_range_are_warm(palette: Mapping[str, str]) -> None:
    """The backgrounds of other rates have more blue than red."""
    warm = {name: palette[name][1:3] > palette[name][5:7] for name in HEAT}
    assert warm == {"low": True, "mid": False, "high": False}
