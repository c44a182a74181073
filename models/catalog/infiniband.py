"""Names of InfiniBand's signalling rates (IBTA Architecture Specification, volume 2)."""

from __future__ import annotations

from collections.abc import Mapping

# Gigabits per second of one lane. Most ports have four lanes.
LANE_GIGABITS: Mapping[str, float] = {
    "SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200
}  # fmt: skip
