"""A matrix read as a whole: flows that are each a little slow, and all of them over one thing.

A single copy has to be slower than copies scatter; the median of fourteen that a GPU takes part in scatters far less.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping

from ..bandwidth.best_rates import best_observations
from ..bandwidth.peer_flows import COHORT_LINK, cohort_of, noise
from ..facts.records import Flow
from ..inventory.snapshot import Snapshot
from ..report import Expectation
from .localization import Candidate, candidates_of

_FEWEST = 4  # flows on either side: over the thing, and not over it
_ERRORS = 5  # standard errors apart; of a hundred things that are looked at, chance makes none so
_QUARTILE = 1.36  # standard errors of a quartile in those of a mean (normal distribution)


def slow_together(snapshot: Snapshot) -> Mapping[Flow, Expectation]:
    """Of the flows over each such thing, what their kin reach that do not go over it."""
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
    typical = statistics.median(others)
    reached = sorted(best[flow].value for flow in flows)[len(flows) * 3 // 4]  # nearly all, not some that are very slow
    error = noise(snapshot, flows[0]) * _QUARTILE * (1 / len(flows) + 1 / len(others)) ** 0.5
    apart = max(COHORT_LINK, _ERRORS * error)
    if reached >= (1 - apart) * typical:
        return {}
    source = f"median of {len(others)} equal flows of this node that do not go there"
    low, high = (1 - apart) * typical, (1 + apart) * typical
    # One that is nearly as fast as the others shows that it is something else that slows most.
    slow = [flow for flow in flows if best[flow].value < (1 - apart / 2) * typical]
    return dict.fromkeys(slow, Expectation(basis="kin", low=low, typical=typical, high=high, source=source))
