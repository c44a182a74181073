"""What `linkgauge plan` says of published runs with mixtures of experts is true of the runs in bench/accuracy."""

from __future__ import annotations

from bench.accuracy.trainings.training_runs import Result, compared, runs
from linkgauge.exporters.commands.plan import _MIXTURES


def recipes() -> list[Result]:
    return compared([one for one in runs() if one.published.kind == "recipe"])


def test_how_many_mixtures_took_longer_than_the_slowest_estimate() -> None:
    mixtures = [one for one in recipes() if one.experts]
    longer = [one.run.seconds / one.step.usual for one in mixtures if one.run.seconds > one.step.slowest]
    assert (len(longer), len(mixtures)) == (35, 221)
    assert round(len(mixtures) / len(longer)) == 6
    assert "one of six" in _MIXTURES
    assert f"{max(longer):.1f} times" in _MIXTURES


def test_five_of_six_runs_of_the_fitted_sources_are_inside() -> None:
    """models/training/step_time.py says so of SPREAD and _VARIES."""
    fitted = [one for one in recipes() if not one.run.held_back]
    assert sum(one.inside for one in fitted) >= 5 / 6 * len(fitted)


def test_half_of_the_sources_is_held_back() -> None:
    """Each source is in one half, and trials are in neither."""
    held, fitted = ({one.published.source for one in runs() if one.held_back == held} for held in (True, False))
    trials = {one.published.source for one in runs() if one.published.kind == "trial"}
    assert not held & fitted
    assert len(fitted - trials) - len(held) in (0, 1)
