"""Empty pictures for charts. Only charts need matplotlib (the extra [plot]), which is slow to import."""

from __future__ import annotations

from matplotlib.figure import Figure


def figure(height: float) -> Figure:
    """A picture of 10 inches and this height, whose parts do not overlap."""
    return Figure(figsize=(10, height), layout="constrained")
