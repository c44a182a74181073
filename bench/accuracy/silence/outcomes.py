"""What linkgauge says of each single fault: python -m bench.accuracy.silence

Each node of healthy_nodes.py gets each fault of each device, link, count, counter and log line, alone, and each fault
of all equal devices at once (modules every_*.py). The result of a fault is one of:

- named: a finding that the healthy node lacks has the right code and the right subject.
- info: only a finding with severity info does.
- uncorroborated: no finding, and the coverage of the report or its gaps list the value.
- cohort: all equal devices have the fault, no finding, and only their agreement supports the value.
- misnamed: the findings are about another thing only.
- missed: none of these.

An additional finding is one beside the right one. --pairs gives nodes two faults at once: neither changes the severity
of the other, and nothing else is found. The exit code is 1 if a share is above the limits in this file.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import chain
from random import Random

from msgspec import Struct

from bench.accuracy.faults import Case, group_of, whole_groups
from bench.accuracy.healthy_nodes import HealthyNode, described, real
from bench.accuracy.silence import every_device, every_log_line, every_value
from bench.accuracy.silence.every_draw import drawn_cases
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Finding, Report
from linkgauge.models.rules import CLAIMS
from linkgauge.models.rules.core.claims import Claim
from linkgauge.models.site.schema import Site

SOURCES = (drawn_cases, *every_device.SOURCES, *every_value.SOURCES, every_log_line.log_cases)
OUTCOMES = ("named", "info", "uncorroborated", "cohort", "missed", "misnamed")
MOST_MISSED = 0.01
_TRIES = 50


class Result(Struct, frozen=True):
    """What the report says of one fault, why it says no more, and the additional findings."""

    node: str
    kind: str
    place: str
    outcome: str
    reason: str = ""
    extra: tuple[str, ...] = ()


def cases_of(node: HealthyNode, kinds: str, quick: bool) -> list[Case]:
    """All faults of a node whose kind matches the pattern. Quick: one of equal devices, and all at once."""
    singles = [case for make in SOURCES for case in make(node)]
    singles = [case for case in singles if fnmatchcase(case.kind, kinds)]
    groups = list(whole_groups(node, singles))
    if quick:
        first = {(case.kind, case.option, group_of(node, case.place)): case for case in reversed(singles)}
        singles = list(first.values())
    return [*singles, *groups]


def broken(node: HealthyNode, cases: Iterable[Case]) -> Snapshot:
    """The node with these faults."""
    records, past = list(node.records), list[Observation]()
    for case in cases:
        records = case.edit(records)
        past += case.past
    return assemble(records, Site(), node.now, past=past, origin=node.origin)


def news(healthy: Report, report: Report) -> list[Finding]:
    """The findings that the healthy node lacks, or has with another severity or another text."""
    known = {(one.code, one.subject, one.severity, one.message) for one in healthy.findings}
    found = [one for one in report.findings if not one.silenced]
    return [one for one in found if (one.code, one.subject, one.severity, one.message) not in known]


def judged(node: HealthyNode, healthy: Report, case: Case) -> Result:
    """The result of one fault."""
    snapshot = broken(node, [case])
    report = evaluate(snapshot)
    new = news(healthy, report)
    hits = [one for one in new if one.code in case.codes and one.subject in case.subjects]
    grave = [one for one in hits if one.severity != "info"]
    known = {(one.code, one.subject) for one in healthy.findings if one.severity != "info"}
    explained = {name for one in hits for name in one.explains}
    others = [
        f"{one.code} {one.subject}"
        for one in new
        if one not in hits and one.severity != "info" and (one.code, one.subject) not in known
    ]
    extra = tuple(name for name in others if name.replace(" ", ":") not in explained)
    result = partial(Result, node.name, case.kind, case.place)
    if grave or (hits and case.info):
        return result("named", extra=extra)
    if hits:
        return result("info", f"{hits[0].code} {hits[0].subject}: {hits[0].message}", extra)
    if extra:
        return result("misnamed", ", ".join(extra))
    if listed := _listed(report, case):
        return result("uncorroborated", listed)
    claims = [claim for claim in _claims(snapshot) if claim.subject in case.subjects and _about(case, claim.quantity)]
    if case.devices > 1 and any(claim.corroborated and claim.corroborated.by == "cohort" for claim in claims):
        return result("cohort")
    return result("missed", _why(healthy, case, claims, new))


def _claims(snapshot: Snapshot) -> list[Claim]:
    return [claim for make in CLAIMS for claim in make(snapshot)]


def _about(case: Case, text: str) -> bool:
    return any(word in text.lower() for word in case.words)


def _listed(report: Report, case: Case) -> str:
    """Where the report says that nothing supports the value; "" if it does not."""
    for one in report.coverage.uncorroborated:
        if one.subject in case.subjects and any(_about(case, quantity) for quantity in one.quantities):
            return f"coverage: {one.subject} {', '.join(one.quantities)}"
    for gap in report.not_checked:
        if gap.subject in case.subjects and _about(case, gap.what):
            return f"not checked: {gap.what} {gap.subject}"
    return ""


def _why(healthy: Report, case: Case, claims: Sequence[Claim], new: Sequence[Finding]) -> str:
    """Why nothing names the fault."""
    if new:
        return f"only info on another thing: {new[0].code} {new[0].subject}"
    for claim in claims:
        if support := claim.corroborated:
            return f"{support.by} supports the {claim.quantity}: {support.source}"
    same = next((one for one in healthy.findings if one.code in case.codes and one.subject in case.subjects), None)
    if same:
        return f"the healthy node already has {same.code} {same.subject}"
    if claims:
        return f"its {claims[0].quantity} is contradicted, and no rule reports it"
    evaluated = [code for code in sorted(case.codes) if healthy.checks.get(code)]
    return f"no claim; evaluated without a finding: {', '.join(evaluated) or 'none of its codes'}"


@cache
def nodes_by_name() -> dict[str, HealthyNode]:
    """The nodes by name. main() fills it before the processes start."""
    return {}


def of_node(name: str, kinds: str, quick: bool) -> list[Result]:
    """The results of all faults of a node."""
    node = nodes_by_name()[name]
    healthy = evaluate(broken(node, []))
    return [judged(node, healthy, case) for case in cases_of(node, kinds, quick)]


def pairs_of(name: str, count: int, kinds: str, seed: int) -> list[str]:
    """What two faults at once change, for this number of random pairs of a node that share no device."""
    node, chance = nodes_by_name()[name], Random(f"{seed} {name}")
    healthy = evaluate(broken(node, []))
    cases = [case for case in cases_of(node, kinds, quick=False) if case.devices == 1]
    wrong = []
    for _ in range(count):
        if pair := _drawn_pair(node, cases, chance):
            alone = [news(healthy, evaluate(broken(node, [case]))) for case in pair]
            report = evaluate(broken(node, pair))
            both = news(healthy, report)
            bare = {one.subject for one in report.coverage.uncorroborated}
            where = " + ".join(f"{case.kind} {case.place}" for case in pair)
            wrong += [f"{name}: {where}: {what}" for what in _changed(pair, alone, both, bare)]
    return wrong


def _drawn_pair(node: HealthyNode, cases: Sequence[Case], chance: Random) -> tuple[Case, Case] | None:
    for _ in range(_TRIES if len(cases) > 1 else 0):
        one, other = chance.sample(cases, 2)
        if not (_affected(node, one) & _affected(node, other)) and group_of(node, one.place) != group_of(
            node, other.place
        ):
            return one, other
    return None


def _affected(node: HealthyNode, case: Case) -> frozenset[str]:
    """The names of the affected devices without those of the node as a whole."""
    names = case.about or case.subjects
    return frozenset(name for name in names if not name.startswith(("node", "numa", "package")))


def _changed(
    pair: Sequence[Case], alone: Sequence[Sequence[Finding]], both: Sequence[Finding], bare: Collection[str]
) -> Iterator[str]:
    """A finding may name both faults. If a fault removes the equal devices of the other, coverage lists the other."""
    now = {(one.code, one.subject): one.severity for one in both}
    expected = {(one.code, one.subject): one.severity for found in alone for one in found}
    for case, found in zip(pair, alone, strict=True):
        for one in found:
            if one.code in case.codes and one.subject in case.subjects:
                severity = now.get((one.code, one.subject))
                named = any(_names(two, one) or f"{one.code}:{one.subject}" in two.explains for two in both)
                if severity != one.severity and not named and not (one.basis == "kin" and one.subject in bare):
                    yield f"{one.code} {one.subject} was {one.severity}, is {severity or 'gone'}"
    for one in both:
        common = all(any(_names(one, two) for two in found) for found in alone)
        if one.severity != "info" and (one.code, one.subject) not in expected and not common:
            yield f"also found: {one.code} {one.subject}"


def _names(finding: Finding, other: Finding) -> bool:
    """Whether a finding about several things names the thing of another finding."""
    alike = (finding.code, finding.severity) == (other.code, other.severity) and finding.subject != other.subject
    return alike and other.subject in finding.message


def table(results: Iterable[Result], by: str) -> Iterator[str]:
    """The number of faults with each outcome, by kind or by node."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for one in results:
        rows[getattr(one, by)].update([one.outcome, *(["additional"] if one.extra else [])])
    columns = (*OUTCOMES, "additional")
    yield f"{by:58} {'faults':>7} " + " ".join(f"{name:>8.8}" for name in columns)
    total: Counter[str] = sum(rows.values(), Counter())
    for name, row in (*sorted(rows.items()), ("total", total)):
        count = sum(row[outcome] for outcome in OUTCOMES)
        yield f"{name[:58]:58} {count:7} " + " ".join(f"{row[column] or '-':>8}" for column in columns)


def misses(results: Iterable[Result], outcomes: Sequence[str]) -> Iterator[str]:
    """The faults with these outcomes, and those with additional findings: kind, node, reason, places."""
    places: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for one in results:
        if one.outcome in outcomes:
            places[one.outcome, one.kind, one.node, one.reason].append(one.place)
        if one.extra:
            places["additional", one.kind, one.node, ", ".join(one.extra)].append(one.place)
    for (outcome, kind, node, reason), where in sorted(places.items()):
        yield f"{outcome}: {kind}, {node}: {reason} [{len(where)}: {', '.join(dict.fromkeys(where))}]"


def failures(results: Sequence[Result], wrong: Sequence[str]) -> Iterator[str]:
    """The limits that are not met."""
    count = Counter(one.outcome for one in results)
    if count["missed"] > MOST_MISSED * len(results):
        yield f"{count['missed']} of {len(results)} faults are missed"
    if count["misnamed"]:
        yield f"{count['misnamed']} faults are misnamed"
    if extra := sum(bool(one.extra) for one in results if one.outcome != "misnamed"):
        yield f"{extra} faults have additional findings"
    if wrong:
        yield f"{len(wrong)} findings change if there is a second fault"


def main(arguments: argparse.Namespace) -> int:
    """Print the tables. Returns the exit code."""
    every = chain(described(), () if arguments.described else real())
    nodes_by_name().update((node.name, node) for node in every if fnmatchcase(node.name, arguments.nodes))
    nodes = list(nodes_by_name())
    single = partial(of_node, kinds=arguments.kinds, quick=arguments.quick)
    several = partial(pairs_of, count=-(-arguments.pairs // max(len(nodes), 1)), kinds=arguments.kinds, seed=1)
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        results = [one for some in pool.imap(single, nodes) for one in some]
        wrong = [one for some in pool.imap(several, nodes if arguments.pairs else []) for one in some]
    if not arguments.only_missed:
        print("\n".join([*table(results, "kind"), "", *table(results, "node"), ""]))
    print("\n".join([*misses(results, arguments.list.split(",")), *wrong]))
    failed = list(failures(results, wrong))
    print("\n".join(failed) or "all limits hold")
    return int(bool(failed))
