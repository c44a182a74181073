"""What `linkgauge plan` says of published runs with mixtures of experts is true of the runs in bench/accuracy."""

from __future__ import annotations

from bench.accuracy.training_runs import compared
from linkgauge.exporters.text.plan import _MIXTURES


def test_how_many_mixtures_took_longer_than_the_slowest_estimate() -> None:
    results = compared()
    mixtures = [one for one in results if one.experts]
    longer = [one.published / one.step.usual for one in mixtures if one.published > one.step.slowest]
    assert (len(longer), len(mixtures)) == (47, 132)
    assert round(3 * len(longer) / len(mixtures)) == 1
    assert "one of three" in _MIXTURES
    assert f"{max(longer):.1f} times" in _MIXTURES


def test_five_of_six_runs_of_the_fitted_sources_are_inside() -> None:
    """models/training/step_time.py says so of SPREAD and _VARIES."""
    fitted = [one for one in compared() if not one.run.held_back]
    assert sum(one.inside for one in fitted) >= 0.82 * len(fitted)
