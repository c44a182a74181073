"""Which flows must be measured again before it is known whether they are slow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TypeAlias

from ..bandwidth.best_rates import best_observations
from ..bandwidth.peer_flows import cohort_key, cohort_of, healthy_loss, others_of, relative_error
from ..bandwidth.repeated_rates import FEWEST, LOST, MOST, Decision, decide, series_of
from ..facts.records import Flow
from ..inventory.snapshot import Snapshot
from ..report import Report

Run: TypeAlias = frozenset[tuple[str, ...]]  # the ends of the flows that run at the same time
_FEWEST_OTHERS = 3  # with fewer equals, the slow one of them cannot be identified


def again(snapshot: Snapshot, report: Report) -> frozenset[Run]:
    """The runs to measure again: all flows of each cohort with an undecided flow, so that equals are measured in turn.

    A flow that a state explains, such as a narrow link, is decided.
    """
    explained = {name for one in report.findings if one.kind != "measurement" for name in one.explains}
    undecided = (
        cohort
        for cohort in cohort_of(snapshot).values()
        if _is_undecided(snapshot, [one for one in cohort if f"bandwidth-low:{one.subject}" not in explained])
    )
    return frozenset(frozenset((flow.ends, *flow.beside)) for cohort in undecided for flow in cohort)


def _is_undecided(snapshot: Snapshot, cohort: Sequence[Flow]) -> bool:
    """Whether a flow must be measured again.

    If a flow lost little, the equals that share its cause lost little too: all are measured until they show it.
    """
    decided = {flow: decision(snapshot, flow) for flow in cohort}
    slight = [flow for flow, found in decided.items() if found == "slow" and share_of(snapshot, flow) > 1 - 2 * LOST]
    series = series_of(snapshot)
    return "again" in decided.values() or any(series[flow].count < MOST for flow in slight)


def decision(snapshot: Snapshot, flow: Flow) -> Decision:
    """What the measurements of a flow and of its equals decide. A flow without enough equals is not repeated."""
    others = others_of(snapshot, flow)
    if (
        len(flow.ends) < 2
        or len(others) < _FEWEST_OTHERS
        or flow not in cohort_of(snapshot)[cohort_key(snapshot, flow)]
    ):
        return "equal"
    series = series_of(snapshot).get(flow)
    count = series.count if series else 1
    found = decide(
        share_of(snapshot, flow),
        relative_error(snapshot, flow, len(others)),
        healthy_loss(snapshot, flow, len(others)),
        settled=count >= FEWEST,
    )
    return "equal" if found == "again" and count >= MOST else found


def share_of(snapshot: Snapshot, flow: Flow) -> float:
    """The rate of a flow as a share of the median of its equals."""
    best = best_observations(snapshot)
    return best[flow].value / statistics.median(best[other].value for other in others_of(snapshot, flow))
