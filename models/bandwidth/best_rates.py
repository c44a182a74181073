"""The best observed rate of each flow."""

from __future__ import annotations

from collections.abc import Mapping

from ..facts.records import Flow, Observation
from ..inventory.snapshot import Snapshot, once_per_snapshot
from .plausibility import implausible

RATES = ("rate", "bus_bandwidth", "hca_loopback")  # quantities of observations that become levels


@once_per_snapshot
def best_observations(snapshot: Snapshot) -> Mapping[Flow, Observation]:
    """The highest plausible rate of each flow: disturbances only lower a measurement."""
    best: dict[Flow, Observation] = {}
    wrong = {id(one.observation) for one in implausible(snapshot)}
    for about, series in snapshot.observed.items():
        rates = [one for one in series if one.quantity in RATES and id(one) not in wrong]
        if isinstance(about, Flow) and rates:
            best[about] = max(rates, key=lambda one: one.value)
    return best
