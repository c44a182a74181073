"""The observed rate of each flow: the best of a few measurements, the middle of many."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ..facts.records import Evidence, Flow, Observation
from ..inventory.snapshot import Snapshot, once_per_snapshot
from .plausibility import implausible
from .repeated_rates import Series, series_of

RATES = ("rate", "bus_bandwidth", "hca_loopback")  # quantities of observations that become levels


@once_per_snapshot
def best_observations(snapshot: Snapshot) -> Mapping[Flow, Observation]:
    """The rate of each flow.

    Of a few measurements the highest plausible rate, because disturbances only lower a measurement. Of a series the
    mean of the middle half: the highest of many is above the rate by chance, and more so the more there are.
    """
    best: dict[Flow, Observation] = {}
    wrong = {id(one.observation) for one in implausible(snapshot)}
    for about, series in snapshot.observed.items():
        rates = [one for one in series if one.quantity in RATES and id(one) not in wrong]
        if isinstance(about, Flow) and rates:
            best[about] = max(rates, key=lambda one: one.value)
    return {**best, **{flow: _typical(series) for flow, series in series_of(snapshot).items()}}


def _typical(series: Series) -> Observation:
    """The middle of a series as one observation."""
    source = series.newest.evidence
    text = f"{source.text}; mean of the middle half of {series.count} measurements"
    return replace(series.newest, value=series.middle, evidence=Evidence(source.source, text))
