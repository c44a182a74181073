"""Attribution: which state explains a slow flow. Flows without such a state are grouped by what they have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..bandwidth.best_rates import best_observations
from ..bandwidth.expectations import together
from ..bandwidth.peer_flows import noise
from ..bandwidth.plausibility import invalid
from ..bandwidth.repeated_rates import LOST, series_of, slower_than_before
from ..facts.records import Evidence, Flow
from ..facts.units import as_gigabytes
from ..graph.fair_share import shares
from ..graph.flow_paths import hops_of
from ..graph.routes import limited
from ..inventory.snapshot import Snapshot
from ..report import ABSOLUTE, COHORT, Expectation, Finding, Level
from .bandwidth_findings import Slow, alone, contention_findings, shared
from .cohort_shift import cohort_shifts
from .localization import Candidate, candidates_of, localize
from .passive_rates import lagging_links
from .qualitative_causes import may_slow
from .slower_peers import slower_peers
from .unsteady_rates import unequal_runs, unsteady

# A copy reaches the same share of a limited link's rate, up to this variation between copies.
_SLACK = 0.95
# A limit on another kind of link changes the share: 0.79 of PCIe 3, 0.88 of PCIe 5, 0.98 of a port. Expectations from
# link rates include part of this difference. Flows of a cohort are closer together, so their factor is lower.
_SLACK_ELSEWHERE, _COHORT_SLACK = 0.9, 0.85
_ERRORS = 3  # standard deviations of measurement noise
# Lost share from which a flow may have the same cause as a slow flow: half of the smallest loss that is looked for.
_PROBABLY = LOST / 2
_MOST_EVIDENCE = 6  # measurements below a state; the finding lists the names of all flows


def attribute(snapshot: Snapshot, levels: Sequence[Level], states: Iterable[Finding]) -> list[Finding]:
    """The states with the slow flows that they explain, then one finding per cause of the remaining slow flows.

    Implausible measurements become findings of their own and explain nothing.
    """
    found = [*states, *invalid(snapshot), *contention_findings(snapshot, levels), *lagging_links(snapshot)]
    found += [*unsteady(snapshot), *slower_peers(snapshot, levels, found)]
    found += unequal_runs(snapshot, found)
    best = best_observations(snapshot)
    shifts = cohort_shifts(snapshot)
    remaining: dict[Flow, Slow] = {}
    for level in levels:
        shifted = [shifts[level.flow]] if level.flow in shifts else []
        below = [(level, missed) for missed in (*missed_by(level, noise(snapshot, level.flow)), *shifted)]
        for reached, missed in (*below, *slower_than_before(snapshot, level)):
            index, share = _explained(snapshot, found, reached, missed)
            slow = Slow(reached, missed, share, best[level.flow].evidence)
            if index is None:
                remaining[level.flow] = slow
                break
            found[index] = _with(found[index], [slow])
    related = _related(snapshot, levels, remaining)
    every = {**remaining, **related}
    for localized in list(localize(snapshot, levels, every)):
        slows = [every[flow] for flow in localized.flows]
        sure = [remaining.pop(flow) for flow in localized.flows if flow in remaining]
        if not sure:
            continue
        _take(found, snapshot, slows, localized.candidate, shared(snapshot, localized, slows, levels))
    for slow in remaining.values():
        _take(found, snapshot, [slow], None, alone(snapshot, slow))
    return found


def _related(snapshot: Snapshot, levels: Sequence[Level], slow: Mapping[Flow, Slow]) -> dict[Flow, Slow]:
    """Flows that are probably slow because they share a link or an end with a flow that surely is.

    Their own measurements alone do not show it. They only help to locate the cause of the slow flow.
    """
    sure = [flow for flow in slow if flow in series_of(snapshot)]
    causes = {one for flow in sure for one in candidates_of(snapshot, flow)}
    best, found = best_observations(snapshot), dict[Flow, Slow]()
    for level in levels if sure else ():
        flow = level.flow
        cohort = next((one for one in level.expected if one.basis == COHORT), None)
        if cohort is None or flow in slow or flow not in series_of(snapshot):
            continue
        least = (1 - max(_PROBABLY, _ERRORS * noise(snapshot, flow))) * cohort.typical
        if best[flow].value < least and not causes.isdisjoint(candidates_of(snapshot, flow)):
            found[flow] = Slow(level, cohort, 1.0, best[flow].evidence)
    return found


def missed_by(level: Level, error: float = 0.0) -> list[Expectation]:
    """Expectations above the observed rate, the deciding one first. `error` is the noise of such measurements.

    Of site, profile and capability only the first decides. Cohort and baseline are checked in addition.
    """
    absolute = [one for one in level.expected if one.basis in ABSOLUTE]
    relative = [one for one in level.expected if one.basis not in ABSOLUTE]
    observed = level.observed
    if observed is None:
        return []
    below = [one for one in absolute if observed < (1 - _ERRORS * error) * one.low]
    return [*below, *(one for one in relative if observed < one.low)]


def _take(
    found: list[Finding], snapshot: Snapshot, slow: Sequence[Slow], candidate: Candidate | None, new: Finding
) -> None:
    """Add slow flows to a state whose kind may slow them, even without a known limit; otherwise add the new finding."""
    for index, state in enumerate(found):
        if may_slow(snapshot, state, [one.level.flow for one in slow], candidate):
            found[index] = _with(state, slow)
            return
    found.append(new)


def _with(state: Finding, slow: Sequence[Slow]) -> Finding:
    """The state with the flows that it explains, and the share of their loss that it explains."""
    names = dict.fromkeys((*state.explains, *(f"bandwidth-low:{one.level.flow.subject}" for one in slow)))
    room = max(0, _MOST_EVIDENCE - len(state.explains))
    further = [line for one in slow[:room] for line in (one.evidence, *_accounted(one))]
    severity = "warning" if state.code == "cpu-governor" and state.severity == "info" else state.severity
    return replace(state, explains=tuple(names), severity=severity, evidence=(*state.evidence, *further))


def _accounted(slow: Slow) -> list[Evidence]:
    """How much of the loss of a flow the state explains, if the state has limits."""
    expected, observed = slow.missed.typical, slow.level.observed or 0.0
    if slow.share == 1 or expected <= observed:
        return []
    part = min(1.0, expected * (1 - slow.share) / (expected - observed))
    text = f"{as_gigabytes(observed)} of {as_gigabytes(expected)}; the limit accounts for {part:.0%} of what is missing"
    return [Evidence(f"{slow.level.op} {slow.level.flow.subject}", text)]


def _explained(
    snapshot: Snapshot, found: Sequence[Finding], level: Level, missed: Expectation
) -> tuple[int | None, float]:
    """The index of the state that explains a slow flow (None: no state), and the share of the rate that all limits
    leave.

    A state explains the flow if the observed rate is what the limits on its path leave. Of several states, the one with
    the tightest limit.
    """
    on_the_way = {link.id for hop in hops_of(snapshot.topology, level.flow) for link in hop.links}
    holders = [index for index, state in enumerate(found) if on_the_way & state.limits.keys()]
    if not holders or level.rated is None or level.observed is None:
        return None, 1.0
    every = [(link, rate) for index in holders for link, rate in found[index].limits.items()]
    lowest = {link: min(rate for other, rate in every if other == link) for link, _ in every}
    share = _share(snapshot, level.flow, lowest)
    slack = _COHORT_SLACK if missed.basis not in ABSOLUTE else _SLACK_ELSEWHERE if share != 1 else _SLACK
    if share is None or level.observed < slack * missed.low * share:
        return None, share or 1.0
    return min(holders, key=lambda index: _share(snapshot, level.flow, found[index].limits) or 1.0), share


def _share(snapshot: Snapshot, flow: Flow, limits: Mapping[str, float]) -> float | None:
    """The share of the flow's rate that the limits leave."""
    flows: Collection[Flow] = together(flow)
    remaining = shares(snapshot.topology, flows, limited(limits)).get(flow)
    whole = shares(snapshot.topology, flows, limited({})).get(flow)
    return remaining / whole if remaining and whole else None
