"""How often a fault is found where it is, and nothing else: python bench/judge.py [--seed N] [--nodes N]

Healthy nodes, described and real (beds.py), are broken in no way, one or two, drawn from kinds of faults (states.py,
conditions.py, slow_links.py). Copies over their links are measured with a scatter of 0.2 % or of 2 %. Right is where
the code is found on the right subject, and no other warning. Exit code 1 where fewer are than the bounds below say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import conditions
import slow_links
import states
from beds import Bed
from edits import Edit
from faults import Fault, Kind
from measured import report_on, seen, slowed
from oddities import odd

from linkgauge.models.report import Finding, Report

KINDS: Mapping[str, Kind] = {**states.KINDS, **conditions.KINDS, **slow_links.KINDS}
SCATTERS = (0.002, 0.02)
_TRIES = 200
_CLASSES = ((0.0, 0.03), *slow_links.SIZES, (0.6, 1.0))


@dataclass(frozen=True)
class Trial:
    """A node, how it is broken, and how its copies are measured."""

    bed: Bed
    faults: tuple[tuple[str, Fault], ...]
    scatter: float
    seed: int
    odd: Edit = list


@dataclass(frozen=True)
class Outcome:
    """Of each fault whether it was found, and on the right subject; and what else was said."""

    trial: Trial
    found: tuple[bool, ...]
    right: tuple[bool, ...]
    extra: tuple[Finding, ...]

    @property
    def whole(self) -> bool:
        """Exactly what is wrong, and nothing else."""
        return all(self.right) and not self.extra


def draw(beds: Sequence[Bed], kinds: Mapping[str, Kind], count: int, seed: int) -> Trial:
    """A node with so many faults, none of which is about a device that another is about.

    Without faults, with what is odd and healthy.
    """
    chance = Random(seed)
    scatter = chance.choice(SCATTERS)
    for _ in range(_TRIES):
        bed = chance.choice(beds)
        if count == 0:
            return Trial(bed, (), scatter, seed, odd(bed, chance)[1])
        faults: list[tuple[str, Fault]] = []
        for name in chance.sample(sorted(kinds), k=len(kinds)):
            fault = kinds[name](bed, chance) if len(faults) < count else None
            if fault is not None and not any(fault.about & other.about for _, other in faults):
                faults.append((name, fault))
        if len(faults) == count and _can_be_seen(bed, [fault for _, fault in faults]):
            return Trial(bed, tuple(faults), scatter, seed)
    raise ValueError("no node has a place for such faults")


def _can_be_seen(bed: Bed, faults: Sequence[Fault]) -> bool:
    """What is slow without a state is seen beside its equals: both faults together must leave most of them as fast."""
    if all(fault.code != "bandwidth-low" for fault in faults):
        return True
    rates = slowed(bed.case.topology, bed.rates, [fault.loss for fault in faults])
    return slow_links.visible(bed, frozenset(flow for flow, rate in rates.items() if rate < 0.99 * bed.rates[flow]))


def judged(trial: Trial) -> Report:
    """The report on the broken node."""
    said = trial.odd(list(trial.bed.said))
    for _, fault in trial.faults:
        said = fault.edit(said)
    rates = slowed(trial.bed.case.topology, trial.bed.rates, [fault.loss for _, fault in trial.faults])
    measured = seen(rates, Random(trial.seed), trial.scatter, trial.bed.now)
    return report_on([*said, *measured], trial.bed.now, trial.bed.origin)


def outcome(trial: Trial) -> Outcome:
    """What the report says of the faults, and what else."""
    findings = [one for one in judged(trial).findings if not one.silenced]
    wanted = [fault for _, fault in trial.faults]
    found = [any(_is(one, fault, fault.subjects, fault.info) for one in findings) for fault in wanted]
    grave = [one for one in findings if one.severity != "info"]
    same = [any(one.code == fault.code for one in (findings if fault.info else grave)) for fault in wanted]
    left = [one for one in findings if one.severity != "info"]
    for fault in wanted:
        hit = next((one for one in left if _is(one, fault, fault.subjects, fault.info)), None)
        left = [one for one in left if one is not hit]
    return Outcome(trial, tuple(same), tuple(found), tuple(left))


def _is(finding: Finding, fault: Fault, subjects: frozenset[str], info: bool) -> bool:
    return finding.code == fault.code and finding.subject in subjects and (info or finding.severity != "info")
