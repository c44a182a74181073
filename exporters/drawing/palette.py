"""Colours of pictures and pages, for light and dark screens.

Each colour of a state is readable on its background (WCAG 2.2: contrast of 4.5 for text), and readers with any of the
three kinds of colour blindness can tell the states apart. tests/exporters/drawing computes both. What was not read is
grey and dotted.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "back": "#ffffff",
    "text": "#1b1f24",
    "soft": "#57606a",
    "line": "#c3cad2",
    "panel": "#f6f8fa",
    "good": "#0e66b3",
    "warning": "#996300",
    "critical": "#bc0457",
    "unread": "#636c76",
    "path": "#ffe58a",
    "low": "#f6c7b6",
    "mid": "#ecf4fb",
    "high": "#cfe3f5",
}
DARK: Mapping[str, str] = {
    "back": "#0f1419",
    "text": "#e6edf3",
    "soft": "#9aa7b4",
    "line": "#3d444d",
    "panel": "#161b22",
    "good": "#4c8ff0",
    "warning": "#ffcd28",
    "critical": "#f54678",
    "unread": "#96a0aa",
    "path": "#5c4a00",
    "low": "#6b2a1c",
    "mid": "#12263a",
    "high": "#17395c",
}
# Backgrounds of rates below, within and above the lower half of their range. Only the first one is warm: a rate in its
# range is no warning.
HEAT = ("low", "mid", "high")
# Parts of a whole, for light and dark screens alike (Okabe and Ito, https://jfly.uni-koeln.de/color/; grey added).
PARTS: Mapping[str, str] = {
    "blue": "#0072b2",
    "orange": "#e69f00",
    "yellow": "#f0e442",
    "purple": "#cc79a7",
    "vermilion": "#d55e00",
    "green": "#009e73",
    "grey": "#999999",
    "sky": "#56b4e9",
    "brown": "#8c564b",
}
STATES = ("good", "warning", "critical", "unread")


def variables(colours: Mapping[str, str]) -> str:
    """The colours as CSS custom properties: "--back: #ffffff; --text: ..."."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
