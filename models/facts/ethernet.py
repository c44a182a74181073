"""The speeds of Ethernet links."""

from __future__ import annotations

from .units import from_megabits

_MEGABITS = (  # include/uapi/linux/ethtool.h
    *(10, 100, 1000, 2500, 5000, 10_000, 14_000, 20_000, 25_000, 40_000, 50_000, 56_000),
    *(100_000, 200_000, 400_000, 800_000, 1_600_000),
)
ETHERNET_SPEEDS = frozenset(map(from_megabits, _MEGABITS))  # bytes per second
