"""Which flows must be measured again before it is known whether they are slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..bandwidth.best_rates import best_observations
from ..bandwidth.peer_flows import cohort_key, cohort_of, healthy_loss, others_of, relative_error
from ..bandwidth.repeated_rates import FEWEST, LOST, MOST, Decision, decide, series_of
from ..facts.averages import median
from ..facts.records import Flow
from ..inventory.snapshot import Snapshot
from ..report import Report
from .localization import Candidate, candidates_of

SimultaneousFlows: TypeAlias = frozenset[tuple[str, ...]]  # the ends of flows that run at the same time
_FEWEST_OTHERS = 3  # with fewer equals, the slow one of them cannot be identified


def runs_to_repeat(snapshot: Snapshot, report: Report) -> frozenset[SimultaneousFlows]:
    """The runs to measure again: all flows of each cohort with an open flow, so that equals are measured in turn.

    A flow that a state explains, such as a narrow link, is decided.
    """
    explained = {name for one in report.findings if one.kind != "measurement" for name in one.explains}
    decided = {
        flow: decision(snapshot, flow)
        for cohort in cohort_of(snapshot).values()
        for flow in cohort
        if f"bandwidth-low:{flow.subject}" not in explained and _has_equals(snapshot, flow)
    }
    wanted = {flow for flow, found in decided.items() if found == "undecided"} | _related(snapshot, decided)
    undecided = (cohort for cohort in cohort_of(snapshot).values() if not wanted.isdisjoint(cohort))
    return frozenset(frozenset((flow.ends, *flow.beside)) for cohort in undecided for flow in cohort)


def _related(snapshot: Snapshot, decided: Mapping[Flow, Decision]) -> set[Flow]:
    """Flows that lost little, and the flows over the same links: all are measured until they show a common cause."""
    slight = [flow for flow, found in decided.items() if found == "slow" and share_of(snapshot, flow) > 1 - 2 * LOST]
    causes = {link for flow in slight for link in _links(snapshot, flow)}
    return {
        flow
        for flow in (decided if slight else ())
        if _count(snapshot, flow) < MOST and (flow in slight or not causes.isdisjoint(_links(snapshot, flow)))
    }


def _links(snapshot: Snapshot, flow: Flow) -> set[tuple[int, Candidate]]:
    """The links of a flow that can be slow. Only flows with equally many simultaneous flows show the same."""
    return {(len(flow.beside), one) for one in candidates_of(snapshot, flow) if one.kind == "link"}


def decision(snapshot: Snapshot, flow: Flow) -> Decision:
    """What the measurements of a flow and of its equals decide. A flow without enough equals is not repeated."""
    if not _has_equals(snapshot, flow):
        return "equal"
    others, count = len(others_of(snapshot, flow)), _count(snapshot, flow)
    found = decide(
        share_of(snapshot, flow),
        relative_error(snapshot, flow, others),
        healthy_loss(snapshot, flow, others),
        settled=count >= FEWEST,
    )
    return "equal" if found == "undecided" and count >= MOST else found


def _has_equals(snapshot: Snapshot, flow: Flow) -> bool:
    """Whether the flow moves data between two ends, as enough equal flows do."""
    if len(flow.ends) < 2 or flow not in cohort_of(snapshot).get(cohort_key(snapshot, flow), ()):
        return False
    return len(others_of(snapshot, flow)) >= _FEWEST_OTHERS


def _count(snapshot: Snapshot, flow: Flow) -> int:
    """How often the flow was measured; 1 with too few measurements for a series."""
    series = series_of(snapshot).get(flow)
    return series.count if series else 1


def share_of(snapshot: Snapshot, flow: Flow) -> float:
    """The rate of a flow as a share of the median of its equals."""
    best = best_observations(snapshot)
    return best[flow].value / median(best[other].value for other in others_of(snapshot, flow))
