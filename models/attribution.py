"""Blame: a slow flow goes under the state that explains it; what no state explains is bandwidth-low."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .case import Case
from .expectations import best_observations, together, way_of
from .report import Expectation, Finding, Level, Severity
from .routes import limited
from .said import Observation
from .shares import shares
from .units import as_gigabytes

# A limited link still reaches the same share of its rate, give or take what varies between copies.
_SLACK = 0.95
_CRITICAL = 0.9  # less than that of what is expected at least: a job loses more than a tenth


def attribute(case: Case, levels: Iterable[Level], states: Iterable[Finding]) -> list[Finding]:
    """The states, with the slow flows that they explain; and a finding for each slow flow that none explains."""
    found = list(states)
    best = best_observations(case)
    for level in levels:
        for missed in missed_by(level):
            index = next((i for i, state in enumerate(found) if explains(case, state, level, missed)), None)
            if index is None:
                found.append(_unexplained(level, missed, best[level.flow]))
                break
            name = f"bandwidth-low:{level.flow.subject}"
            if name not in found[index].explains:
                evidence = (*found[index].evidence, best[level.flow].evidence)
                found[index] = replace(found[index], explains=(*found[index].explains, name), evidence=evidence)
    return found


def missed_by(level: Level) -> list[Expectation]:
    """Expectations that the observation is below, the deciding one first.

    Of site, profile and capability the first decides; kin and baseline are looked at besides.
    """
    absolute = [one for one in level.expected if one.basis in ("site", "profile", "capability")]
    relative = [one for one in level.expected if one.basis in ("kin", "baseline")]
    observed = level.observed
    return [] if observed is None else [one for one in (*absolute, *relative) if observed < one.low]


def explains(case: Case, state: Finding, level: Level, missed: Expectation) -> bool:
    """Whether what the state leaves of its links is what the flow got."""
    on_the_way = {link.id for hop in way_of(case, level.flow) for link in hop.links}
    if not on_the_way & state.limits.keys() or level.rated is None or level.observed is None:
        return False
    flows = together(level.flow)
    left = shares(case.topology, flows, limited(state.limits)).get(level.flow)
    whole = shares(case.topology, flows, limited({})).get(level.flow)
    return bool(left and whole) and level.observed >= _SLACK * missed.low * (left or 0) / (whole or 1)


def _unexplained(level: Level, missed: Expectation, seen: Observation) -> Finding:
    first = next(e for e in level.expected)
    severity: Severity = "warning"
    if missed.basis in ("site", "profile", "capability"):
        severity = "info" if missed is not first else "critical" if seen.value < _CRITICAL * missed.low else "warning"
    return Finding(
        code="bandwidth-low",
        severity=severity,
        confidence="likely",
        subject=level.flow.subject,
        message=f"{level.op} {level.flow.subject} reaches {as_gigabytes(seen.value)}, "
        f"expected {as_gigabytes(missed.typical)} and at least {as_gigabytes(missed.low)}",
        expected=missed.typical,
        observed=seen.value,
        unit="bytes_per_second",
        basis=missed.basis,
        expected_source=missed.source,
        cause=f"no state that was read explains it; the tightest hop is {missed.bottleneck}" if missed.bottleneck
        else "no state that was read explains it",
        evidence=(seen.evidence,),
    )  # fmt: skip
