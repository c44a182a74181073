"""Cohort shift: many flows of a cohort are each a little slow, and all of them use the same link or device.

One copy is slow only if it is below the scatter of single copies. The median of fourteen copies of one GPU scatters far
less, so a smaller shift is significant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ..bandwidth.best_rates import best_observations
from ..bandwidth.peer_flows import COHORT_LINK, cohort_of, noise
from ..facts.averages import median
from ..facts.records import Flow
from ..inventory.snapshot import Snapshot
from ..report import COHORT, Expectation
from .localization import Candidate, candidates_of

_FEWEST = 4  # flows with the candidate, and flows without it
_ERRORS = 5  # standard errors; with a hundred candidates chance produces no such shift
_QUARTILE = 1.36  # standard error of a quartile relative to a mean (normal distribution)


def cohort_shifts(snapshot: Snapshot) -> Mapping[Flow, Expectation]:
    """For each flow of a shifted group: the rate of the cohort's flows outside the group."""
    best = best_observations(snapshot)
    found: dict[Flow, Expectation] = {}
    for cohort in cohort_of(snapshot).values():
        over = defaultdict[Candidate, list[Flow]](list)
        for flow in cohort if len(cohort) >= 2 * _FEWEST else ():
            for candidate in dict.fromkeys(candidates_of(snapshot, flow)):
                over[candidate].append(flow)
        for flows in over.values():
            others = [best[flow].value for flow in cohort if flow not in flows]
            if len(flows) >= _FEWEST <= len(others):
                found |= _apart(snapshot, flows, others)
    return found


def _apart(snapshot: Snapshot, flows: list[Flow], others: list[float]) -> Mapping[Flow, Expectation]:
    best = best_observations(snapshot)
    typical = median(others)
    # Nearly all flows are slow, not only a few very slow ones
    reached = sorted(best[flow].value for flow in flows)[len(flows) * 3 // 4]
    error = noise(snapshot, flows[0]) * _QUARTILE * (1 / len(flows) + 1 / len(others)) ** 0.5
    apart = max(COHORT_LINK, _ERRORS * error)
    if reached >= (1 - apart) * typical:
        return {}
    source = f"median of {len(others)} equal flows of this node that do not go there"
    low, high = (1 - apart) * typical, (1 + apart) * typical
    # A flow that is nearly as fast as the others is not slow because of this candidate.
    slow = [flow for flow in flows if best[flow].value < (1 - apart / 2) * typical]
    return dict.fromkeys(slow, Expectation(basis=COHORT, low=low, typical=typical, high=high, source=source))
