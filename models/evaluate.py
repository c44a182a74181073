"""From a snapshot to a report: rules, bandwidth levels, attribution, impact, ignored findings, verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from .bandwidth.expectations import levels
from .bandwidth.product_rates import unproven
from .catalog import codes
from .diagnosis.attribution import attribute
from .diagnosis.coverage import coverage, uncovered, unjudged_text
from .diagnosis.headlines import named
from .diagnosis.ignored import silenced
from .diagnosis.impact import Impact, weigh
from .diagnosis.passive_rates import proven
from .diagnosis.remedies import with_remedies
from .diagnosis.verdict import verdict
from .facts.machine import Node, Pci
from .facts.reason import Reason
from .facts.records import Fact, Flow, NotChecked, Observation
from .facts.units import as_utc
from .inventory.disagreement import disagreements
from .inventory.snapshot import Snapshot, once_per_snapshot
from .jobs.job_rates import proven_by_jobs, slow_groups
from .report import SEVERITIES, Finding, Level, Profile, Report, ReportedObservation, Training
from .rules import RULES, Rule
from .rules.core.rule import anything
from .rules.gpu.bmc_causes import with_bmc_causes
from .rules.host import log_messages
from .rules.nccl.ranks import other_ranks, with_ranks


def evaluate(snapshot: Snapshot) -> Report:
    """The report of a snapshot."""
    states, gaps, checks = apply_rules(snapshot)
    measured = (*levels(snapshot), *proven(snapshot), *proven_by_jobs(snapshot))
    weighed, impact = weigh(snapshot, attribute(snapshot, measured, [*states, *slow_groups(snapshot)]))
    with_causes = [_finish(snapshot, one) for one in with_bmc_causes(snapshot, weighed)]
    every = [one if one.device else _finish(snapshot, one) for one in with_ranks(snapshot, with_causes)]
    known = [_with_known_code(snapshot, one) for one in with_remedies(snapshot, every)]
    # A device without a name can be two facts (the port, its network interface) with the same counters
    found = list({(one.code, one.subject, one.message): one for one in reversed(known)}.values())[::-1]
    found.sort(key=lambda one: (bool(one.silenced), SEVERITIES.index(one.severity), one.code, one.subject))
    unjudged = (*_without_expectation(snapshot, measured), *uncovered(snapshot), *other_ranks(snapshot))
    unread = (*snapshot.not_checked, *gaps, *disagreements(snapshot, found), *unproven(snapshot, measured))
    if any(level.expected for level in measured):
        checks = {**checks, "bandwidth-low": True}
    if _is_text_dump(snapshot) and not (found or unread or unjudged or any(checks.values())):
        unread = (unjudged_text(snapshot),)
    training, unsure = _training(snapshot, impact, measured)
    return Report(
        node=_hostname(snapshot),
        taken_at=as_utc(snapshot.now),
        source=snapshot.origin,
        context=snapshot.context,
        profile=Profile(snapshot.machine.name, snapshot.matched_by or "") if snapshot.machine else None,
        verdict=verdict(found, checks, snapshot.origin, snapshot.runs, unread),
        findings=tuple(found),
        not_checked=(*unread, *unjudged, *unsure),
        checks=checks,
        coverage=coverage(snapshot),
        impact=impact.factors,
        cost=impact.cost,
        training=training,
        levels=measured,
        observations=tuple(_seen(snapshot.observations)),
        topology=snapshot.topology,
        cables=snapshot.site.cables,
        runs=snapshot.runs,
    )


def _is_text_dump(snapshot: Snapshot) -> bool:
    """Whether the input is tool output without PCI functions. Files of topologies have PCI functions and no state."""
    return snapshot.origin == "dumps" and not snapshot.of(Pci)


def apply_rules(snapshot: Snapshot) -> tuple[list[Finding], list[NotChecked], dict[str, bool]]:
    """The findings of all rules, what could not be checked, and for each code whether every wanted check was made."""
    found: list[Finding] = []
    gaps: list[NotChecked] = []
    checks: dict[str, bool] = {}
    logged: list[Finding] = []
    unread = frozenset(one.what for one in snapshot.not_checked)
    for rule in RULES:
        hidden = () if rule.reads.isdisjoint(unread) else snapshot.not_checked
        if not hidden and not snapshot.of(rule.over):
            continue
        results, wanted = _apply(snapshot, rule, hidden)
        to = logged if rule.evaluate is log_messages.reported else found
        to += [one for one in results if isinstance(one, Finding)]
        unchecked = [one for one in results if isinstance(one, NotChecked)]
        gaps += unchecked
        if wanted is not None:
            checks[rule.code] = checks.get(rule.code, True) and wanted and not unchecked
    return log_messages.with_messages(snapshot, found, logged), list(dict.fromkeys(gaps)), checks


def _apply(
    snapshot: Snapshot, rule: Rule, hidden: Sequence[NotChecked]
) -> tuple[list[Finding | NotChecked], bool | None]:
    """The results of one rule, and whether it was evaluated: False if data is missing, None if it had no subject.

    `hidden`: what was not read; it may be empty if nothing of it concerns the rule.
    """
    foreign = [one for one in hidden if one.what in rule.foreign]
    if any(missing.subject == "node" or rule.over is Node for missing in foreign):
        return [], False  # a rule over the node reads everything: a hidden part may change its result
    every: Mapping[str, Fact] = snapshot.of(rule.over)
    selected = every if rule.where is anything else _selected(snapshot, rule)
    missing = any(one.what in rule.wanted and (one.subject in selected or one.subject not in every) for one in hidden)
    evaluated = list(selected.values())
    for name in rule.required:
        evaluated = [thing for thing in evaluated if getattr(thing, name) is not None]
    results = [one for thing in evaluated for one in rule.evaluate(snapshot, thing)]
    incomplete = bool(missing or foreign) and rule.machines(snapshot)
    if snapshot.origin == "dumps" and rule.optional and not results:
        evaluated = [thing for thing in evaluated if _shows(snapshot, thing, rule.optional)]
    return results, False if incomplete else True if evaluated else None


def _shows(snapshot: Snapshot, thing: Fact, names: Iterable[str]) -> bool:
    """Whether one of these fields or observations of the thing is known."""
    seen = {one.quantity for one in snapshot.observed.get(thing.key, ())}
    return any(getattr(thing, name, None) is not None or name in seen for name in names)


def _selected(snapshot: Snapshot, rule: Rule) -> Mapping[str, Fact]:
    """The facts that the rule selects. Rules with the same selection share the result."""
    known = _selections(snapshot)
    key = rule.over, rule.where
    if key not in known:
        known[key] = {key: one for key, one in snapshot.of(rule.over).items() if rule.where(snapshot, one)}
    return known[key]


@once_per_snapshot
def _selections(snapshot: Snapshot) -> dict[tuple[object, object], Mapping[str, Fact]]:
    return {}


def _finish(snapshot: Snapshot, finding: Finding) -> Finding:
    """The finding with its device, and the operator's reason to ignore it."""
    return replace(named(snapshot, finding), silenced=silenced(snapshot, finding))


def _training(
    snapshot: Snapshot, impact: Impact, measured: Iterable[Level]
) -> tuple[Training | None, tuple[NotChecked, ...]]:
    """The cost of the findings for the job in the site file, or the reason why it is unknown."""
    if snapshot.site.job is None:
        return None, ()
    from .training.cost import UnknownCost, cost_of  # imported here because most reports need no training model
    from .training.job_spec import read_job

    try:
        return cost_of(snapshot, read_job(snapshot.site.job, snapshot.site.network), impact, measured), ()
    except UnknownCost as why:
        how = "linkgauge plan lists the values that it needs"
        return None, (
            NotChecked(
                what="impact",
                subject="node",
                reason=Reason.NO_EXPECTATION,
                path=snapshot.site.job,
                detail=str(why),
                how=how,
            ),
        )


def _without_expectation(snapshot: Snapshot, measured: Iterable[Level]) -> Iterable[NotChecked]:
    """One record for each operation and pair of ends without an expectation at any message size."""
    known = {(level.op, level.ends) for level in measured if level.expected}
    for op, ends in dict.fromkeys((level.op, level.ends) for level in measured):
        if (op, ends) not in known:
            machine = snapshot.machine
            first = f"the machine type {machine.name} has no rate for it" if machine else "no machine type"
            why = f"measured, and nothing says what to expect: {first}, no equal flows, no earlier measurement"
            how = "describe the machine in the site file"
            yield NotChecked(
                what=f"rate of {op}", subject=Flow(op, ends).subject, reason=Reason.NO_EXPECTATION, detail=why, how=how
            )


def _seen(observations: Iterable[Observation]) -> Iterator[ReportedObservation]:
    times: dict[float, str] = {}  # hundreds of observations share a few times
    for one in observations:
        about = one.about if isinstance(one.about, str) else f"{one.about.op}:{one.about.subject}"
        at = times.get(one.at) or times.setdefault(one.at, as_utc(one.at))
        yield ReportedObservation(
            about=about, quantity=one.quantity, unit=one.unit, value=one.value, at=at, busy=one.busy
        )


def _with_known_code(snapshot: Snapshot, finding: Finding) -> Finding:
    """In reports of dumps, replace a code by `of_outputs` of codes.toml: their readers know a fixed list of codes."""
    code = codes()[finding.code].of_outputs if snapshot.origin == "dumps" else None
    if code is None:
        return finding
    return replace(finding, code=code, severity="info" if codes()[code].severity == ("info",) else finding.severity)


def _hostname(snapshot: Snapshot) -> str | None:
    node = snapshot.of(Node).get("node")
    return node.hostname if node else None
