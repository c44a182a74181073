"""How often a fault is found at the right place, and nothing else is found:
python -m bench.accuracy.fault_injection [--seed N] [--nodes N]

Healthy nodes, described and real (healthy_nodes.py), get no fault, one fault or two faults from states.py,
conditions.py and slow_links.py. Copies over their links are measured with a scatter of 0.2 % or of 2 %. Undecided
copies are measured again within the budget, as the program does on a live machine. A result is right if the code is
found on the right subject without any other warning. The exit code is 1 if a share is below the limits in this file.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from bench.accuracy import conditions, slow_links, states
from bench.accuracy.edits import Edit
from bench.accuracy.faults import Fault, Kind
from bench.accuracy.healthy_nodes import CLOUDS, HealthyNode, described, node_of, real
from bench.accuracy.measured import Spent, repeated, report_on, seen, slowed
from bench.accuracy.unusual_healthy_nodes import odd
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.measure.gpu.copy_plan import gpus_of

KINDS: Mapping[str, Kind] = {**states.KINDS, **conditions.KINDS, **slow_links.KINDS}
SCATTERS = (0.002, 0.02)
_TRIES = 200
# Limits. A fault with a state is always found. At a scatter of 0.2 %, a cohort within 2 % shows a loss of 3 %. At 2 %,
# a single copy must lose more than measurements scatter (models/bandwidth/peer_flows.py): a loss of a fifth is surely
# found. If two faults affect one copy, an additional finding can remain: in one node of a hundred.
LEAST = {"faults with a state": 1.0, "slow links at 0.2 %": 0.98, "slow links at 2 %, from 20 %": 0.95}
MOST_EXTRA = 0.01
SMALL = {0.0: 0.0, 0.03: 0.8, 0.05: 0.95, 0.1: 0.99}  # lost share at a scatter of 2 %: share of runs that name it
MOST_FALSE = 0.005  # share of healthy nodes with a warning


class Trial(Struct, frozen=True):
    """A node, its faults, and the scatter of its measurements."""

    node: HealthyNode
    faults: tuple[tuple[str, Fault], ...]
    scatter: float
    seed: int
    odd: Edit = list


class Outcome(Struct, frozen=True):
    """For each fault whether it was found, and on the right subject; and the additional findings."""

    trial: Trial
    found: tuple[bool, ...]
    right: tuple[bool, ...]
    extra: tuple[Finding, ...]
    spent: Spent | None  # None: the node is a dump

    @property
    def exactly_right(self) -> bool:
        """All faults are found on the right subject, and nothing else is found."""
        return all(self.right) and not self.extra


def draw(nodes: Sequence[HealthyNode], kinds: Mapping[str, Kind], count: int, seed: int) -> Trial:
    """A node with this number of faults that share no device.

    Without faults: a node with healthy oddities.
    """
    chance = Random(seed)
    scatter = chance.choice(SCATTERS)
    for _ in range(_TRIES):
        node = chance.choice(nodes)
        if count == 0:
            return Trial(node, (), scatter, seed, odd(node, chance)[1])
        faults: list[tuple[str, Fault]] = []
        for name in chance.sample(sorted(kinds), k=len(kinds)):
            fault = kinds[name](node, chance) if len(faults) < count else None
            if fault is not None and not any(fault.about & other.about for _, other in faults):
                faults.append((name, fault))
        if len(faults) == count and _can_be_seen(node, [fault for _, fault in faults]):
            return Trial(node, tuple(faults), scatter, seed)
    raise ValueError("no node has a place for such faults")


def _can_be_seen(node: HealthyNode, faults: Sequence[Fault]) -> bool:
    """Whether slow links without a state can be detected: after both faults, most of their equals must keep
    their rate.
    """
    if all(fault.code != "bandwidth-low" for fault in faults):
        return True
    rates = slowed(node.snapshot.topology, node.rates, [fault.loss for fault in faults])
    return slow_links.visible(node, frozenset(flow for flow, rate in rates.items() if rate < 0.99 * node.rates[flow]))


def evaluated(trial: Trial) -> tuple[Report, Spent | None]:
    """The report on the broken node, and what measuring it has cost."""
    records = trial.odd(list(trial.node.records))
    for _, fault in trial.faults:
        records = fault.edit(records)
    rates = slowed(trial.node.snapshot.topology, trial.node.rates, [fault.loss for _, fault in trial.faults])
    gone = {name for _, fault in trial.faults if fault.code == "gpu-missing" for name in fault.about}
    rates = {flow: rate for flow, rate in rates.items() if gone.isdisjoint(flow.ends)}
    chance = Random(trial.seed)
    if trial.node.origin == "dumps":  # no machine to measure again
        records += seen(rates, chance, trial.scatter, trial.node.now)
        return report_on(records, trial.node.now, trial.node.origin), None
    snapshot = assemble(records, Site(), trial.node.now, origin=trial.node.origin)
    observations, spent = repeated(snapshot, rates, chance, trial.scatter)
    return report_on([*records, *observations], trial.node.now, trial.node.origin), spent


def outcome(trial: Trial) -> Outcome:
    """Compare the report with the faults."""
    report, spent = evaluated(trial)
    findings = [one for one in report.findings if not one.silenced]
    wanted = [fault for _, fault in trial.faults]
    found = [any(_is(one, fault, fault.subjects, fault.info) for one in findings) for fault in wanted]
    grave = [one for one in findings if one.severity != "info"]
    same = [any(one.code == fault.code for one in (findings if fault.info else grave)) for fault in wanted]
    left = [one for one in findings if one.severity != "info"]
    for fault in wanted:
        hit = next((one for one in left if _is(one, fault, fault.subjects, fault.info)), None)
        left = [one for one in left if one is not hit and (one.code, one.subject) not in fault.beside]
    return Outcome(trial, tuple(same), tuple(found), tuple(left), spent)


def _is(finding: Finding, fault: Fault, subjects: frozenset[str], info: bool) -> bool:
    return finding.code == fault.code and finding.subject in subjects and (info or finding.severity != "info")


def trials(groups: Sequence[Sequence[HealthyNode]], faults: int, count: int, seed: int) -> list[Outcome]:
    """Nodes with this number of faults, from each group in turn."""
    return [outcome(draw(groups[n % len(groups)], KINDS, faults, seed + n)) for n in range(count)]


@dataclass
class Row:
    """Counts for one line of a table."""

    drawn: int = 0
    found: int = 0
    right: int = 0

    def add(self, found: bool, right: bool) -> None:
        """Count one more fault."""
        self.drawn += 1
        self.found += found
        self.right += right

    def __str__(self) -> str:
        return f"{self.drawn:6} {self.found:6} {self.right:6}"


def by_kind(outcomes: Iterable[Outcome]) -> Mapping[str, Row]:
    """Counts of faults with a state, and of slow links without a state by scatter."""
    rows = defaultdict[str, Row](Row)
    for one in outcomes:
        for (name, _), found, right in zip(one.trial.faults, one.found, one.right, strict=True):
            rows[f"{name}, {one.trial.scatter:.1%}" if name in slow_links.KINDS else name].add(found, right)
    return dict(sorted(rows.items()))


def by_size(outcomes: Iterable[Outcome]) -> Mapping[tuple[float, tuple[float, float]], Row]:
    """Counts of slow links without a state, by scatter and by lost share."""
    rows = {(scatter, size): Row() for scatter in SCATTERS for size in slow_links.SIZES}
    for one in outcomes:
        for (name, fault), found, right in zip(one.trial.faults, one.found, one.right, strict=True):
            if name in slow_links.KINDS and fault.size:
                size = next(size for size in slow_links.SIZES if fault.size <= size[1])
                rows[one.trial.scatter, size].add(found, right)
    return rows


def shown(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The tables."""
    yield f"{'fault':42}  drawn  found  right"
    yield from (f"{name:42} {row}" for name, row in by_kind(outcomes).items())
    yield f"\n{'slow, no state: scatter and loss':42}  drawn  found  right"
    for (scatter, (least, most)), row in by_size(outcomes).items():
        yield f"{f'{scatter:.1%}  {least:.0%} to {most:.0%}':42} {row}"


def missed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The wrong outcomes, with the command that repeats each."""
    for one in outcomes:
        if not one.exactly_right:
            faults = ", ".join(f"{name} {fault.size or 0:.1%}" for name, fault in one.trial.faults) or "healthy"
            extra = ", ".join(f"{found.code} {found.subject}" for found in one.extra)
            where = f"seed {one.trial.seed}  {one.trial.node.name}  scatter {one.trial.scatter:.1%}  {faults}"
            yield f"{where}{f'  also found: {extra}' if extra else ''}"


def failures(sound: Sequence[Outcome], broken: Sequence[Outcome], clouds: Iterable[Report]) -> Iterator[str]:
    """The limits that are not met."""
    alarms = sum(bool(one.extra) for one in sound)
    if alarms:
        yield f"{alarms} of {len(sound)} healthy nodes have a warning"
    for name in [report.node for report in clouds if report.verdict != "ok"]:
        yield f"{name} is not ok"
    if (extra := sum(bool(one.extra) for one in broken)) > MOST_EXTRA * len(broken):
        yield f"unexpected findings on {extra} of {len(broken)} broken nodes"
    pairs = [
        (name in slow_links.KINDS, one.trial.scatter, fault.size or 1.0, right)
        for one in broken
        for (name, fault), right in zip(one.trial.faults, one.right, strict=True)
    ]
    for what, few in (
        ("faults with a state", [right for slow, _, _, right in pairs if not slow]),
        ("slow links at 0.2 %", [right for slow, scatter, _, right in pairs if slow and scatter == SCATTERS[0]]),
        (
            "slow links at 2 %, from 20 %",
            [r for slow, sc, size, r in pairs if slow and sc == SCATTERS[1] and size > 0.2],
        ),
    ):
        if few and sum(few) < LEAST[what] * len(few):
            yield f"{what}: {sum(few)} of {len(few)}"


def small_losses(losses: Sequence[float], seed: int, nodes: int) -> int:
    """Print how often small losses without a state are found at a scatter of 2 %. Returns the exit code."""
    candidates, wrong, failed = [node for node in described() if _is_repeatable(node)], list[Outcome](), False
    print(f"seed {seed}, {len(candidates)} described nodes, scatter {SCATTERS[1]:.0%}. Mean per run, except largest:")
    print(f"{'loss':>5}  runs  found  right  more  rounds   rates  seconds  largest  terabytes")
    for size in losses:
        outcomes = [outcome(_small(candidates, size, seed + n)) for n in range(nodes)]
        right, more = sum(all(one.right) for one in outcomes), sum(bool(one.extra) for one in outcomes)
        found = f"{sum(all(one.found) for one in outcomes):6} {right:6}" if size else f"{'':6} {'':6}"
        print(
            f"{size:5.0%} {nodes:5} {found} {more:5} {_costs([one.spent for one in outcomes if one.spent])}", flush=True
        )
        failed |= right < SMALL[size] * nodes or more > (MOST_EXTRA if size else MOST_FALSE) * nodes
        wrong += [one for one in outcomes if not one.exactly_right]
    print("\n".join(["", *missed(wrong), "" if failed else "all bounds hold"]))
    return int(failed)


def _costs(spent: Sequence[Spent]) -> str:
    seconds = [one.seconds for one in spent]
    means = f"{fmean(one.rounds for one in spent):7.1f} {fmean(one.rates for one in spent):7.0f} {fmean(seconds):8.1f}"
    return f"{means} {max(seconds):8.1f} {fmean(one.moved for one in spent) / 1e12:10.2f}"


def _small(nodes: Sequence[HealthyNode], size: float, seed: int) -> Trial:
    """A node with one loss of this size; without a fault if the size is 0."""
    trial = draw(nodes, slow_links.KINDS, 1, seed)
    faults = tuple((name, slow_links.resized(fault, size)) for name, fault in trial.faults) if size else ()
    return replace(trial, faults=faults, scatter=SCATTERS[1])


def _is_repeatable(node: HealthyNode) -> bool:
    """Whether the copy probes can measure the node, and a slow link would be visible among its equals."""
    ends = {end for flow in node.rates for end in flow.ends} - {"host"}
    return (
        bool(ends)
        and ends <= gpus_of(node.snapshot.topology).keys()
        and any(kind(node, Random(1)) for kind in slow_links.KINDS.values())
    )


def main(seed: int, nodes: int) -> int:
    """Print the tables. Returns the exit code."""
    groups = [group for group in (list(described()), list(real())) if group]
    sound = trials(groups, 0, nodes, seed)
    clouds = [report_on(node_of(name).records, node_of(name).now) for name in CLOUDS]
    broken: list[Outcome] = []
    print(f"seed {seed}, {len(groups[0])} described nodes, {sum(map(len, groups[1:]))} real ones")
    print(f"healthy: {sum(one.exactly_right for one in sound)} of {len(sound)} without a warning")
    print(f"clouds: {sum(report.verdict == 'ok' for report in clouds)} of {len(clouds)} ok")
    for faults in (1, 2):
        some = trials(groups, faults, nodes, seed + 10_000 * faults)
        broken += some
        for scatter in SCATTERS:
            of = [one for one in some if one.trial.scatter == scatter]
            right, extra = sum(one.exactly_right for one in of), sum(bool(one.extra) for one in of)
            print(f"{faults} fault(s), scatter {scatter:.1%}: {right} of {len(of)} exactly right, {extra} with more")
    print("\n".join(["", *shown(broken), "", *missed([*sound, *broken])]))
    failed = list(failures(sound, broken, clouds))
    print("\n".join(failed) or "all bounds hold")
    return int(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=200, help="of each: healthy, with one fault, with two")
    parser.add_argument("--small", nargs="*", type=float, choices=SMALL, help="only these losses at a scatter of 2 %%")
    arguments = parser.parse_args()
    if arguments.small is not None:
        sys.exit(small_losses(arguments.small or list(SMALL), arguments.seed, arguments.nodes))
    sys.exit(main(arguments.seed, arguments.nodes))
