"""Blame: a slow flow goes under the state that explains it; what no state explains goes under what slow flows share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..bandwidth.best_rates import best_observations
from ..bandwidth.expectations import together
from ..bandwidth.peer_flows import noise
from ..bandwidth.plausibility import invalid
from ..facts.records import Evidence, Flow
from ..facts.units import as_gigabytes
from ..graph.fair_share import shares
from ..graph.flow_paths import hops_of
from ..graph.routes import limited
from ..inventory.snapshot import Snapshot
from ..report import ABSOLUTE, Expectation, Finding, Level
from .bandwidth_findings import Slow, alone, crowds, shared
from .cohort_shift import slow_together
from .localization import Candidate, localize
from .passive_rates import uneven
from .qualitative_causes import may_slow

# A limited link still reaches the same share of its rate, give or take what varies between copies.
_SLACK = 0.95
# Where the limit is on another kind of link than what held the flow before, it reaches another share: 0.79 of PCIe 3,
# 0.88 of PCIe 5, 0.98 of a port. What is expected by the links has room for part of that; kin lie close together.
_SLACK_ELSEWHERE, _COHORT_SLACK = 0.9, 0.85
_ERRORS = 3  # standard deviations that measurements scatter by themselves
_MOST_EVIDENCE = 6  # lines of measurements below a state; the names of all flows stand beside them


def attribute(snapshot: Snapshot, levels: Sequence[Level], states: Iterable[Finding]) -> list[Finding]:
    """The states, with the slow flows that they explain; then what none explains, a finding for each cause.

    Numbers that cannot be are told beside them, and explain nothing.
    """
    found = [*states, *invalid(snapshot), *crowds(snapshot, levels), *uneven(snapshot)]
    best = best_observations(snapshot)
    row = slow_together(snapshot)
    left: dict[Flow, Slow] = {}
    for level in levels:
        of_row = [row[level.flow]] if level.flow in row else []
        for missed in (*missed_by(level, noise(snapshot, level.flow)), *of_row):
            index, share = _explained(snapshot, found, level, missed)
            slow = Slow(level, missed, share, best[level.flow].evidence)
            if index is None:
                left[level.flow] = slow
                break
            found[index] = _with(found[index], [slow])
    for localized in list(localize(snapshot, levels, left)):
        slows = [left.pop(flow) for flow in localized.flows]
        _take(found, snapshot, slows, localized.candidate, shared(snapshot, localized, slows, levels))
    for slow in left.values():
        _take(found, snapshot, [slow], None, alone(snapshot, slow))
    return found


def missed_by(level: Level, error: float = 0.0) -> list[Expectation]:
    """Expectations that the observation is below, the deciding one first; `error` is the noise of such measurements.

    Of site, profile and capability the first decides; kin and baseline are looked at besides.
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
    """Put slow flows under a state that may slow them by what it is, though nobody says by how much; else a finding."""
    for index, state in enumerate(found):
        if may_slow(snapshot, state, [one.level.flow for one in slow], candidate):
            found[index] = _with(state, slow)
            return
    found.append(new)


def _with(state: Finding, slow: Sequence[Slow]) -> Finding:
    """The state with flows that it explains, and how much of what they lost."""
    names = dict.fromkeys((*state.explains, *(f"bandwidth-low:{one.level.flow.subject}" for one in slow)))
    room = max(0, _MOST_EVIDENCE - len(state.explains))
    further = [line for one in slow[:room] for line in (one.evidence, *_accounted(one))]
    severity = "warning" if state.code == "cpu-governor" and state.severity == "info" else state.severity
    return replace(state, explains=tuple(names), severity=severity, evidence=(*state.evidence, *further))


def _accounted(slow: Slow) -> list[Evidence]:
    """How much of what a flow lost the state accounts for, where its limits say so."""
    expected, observed = slow.missed.typical, slow.level.observed or 0.0
    if slow.share == 1 or expected <= observed:
        return []
    part = min(1.0, expected * (1 - slow.share) / (expected - observed))
    text = f"{as_gigabytes(observed)} of {as_gigabytes(expected)}; the limit accounts for {part:.0%} of what is missing"
    return [Evidence(f"{slow.level.op} {slow.level.flow.subject}", text)]


def _explained(
    snapshot: Snapshot, found: Sequence[Finding], level: Level, missed: Expectation
) -> tuple[int | None, float]:
    """Which state leaves least, where what all leave of their links is what the flow got; what share of it that is."""
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
    """What limits leave of what the flow would get."""
    flows: Collection[Flow] = together(flow)
    left = shares(snapshot.topology, flows, limited(limits)).get(flow)
    whole = shares(snapshot.topology, flows, limited({})).get(flow)
    return left / whole if left and whole else None
