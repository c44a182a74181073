"""How often the report of a job names the right link or rank: python -m bench.accuracy.jobs [--jobs 100].

Each job is drawn at random: nodes, layout, and no fault, one, or two at once. Neither of two faults hides the other.
explanations.py lists all places that explain what the groups see. If there are several, the report must name the true
one among its candidates, and none for sure; "not judged": it says that the expected rate of all groups can be wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from bench.accuracy.jobs.cluster import LAYOUTS, Layout, layout, table_of_ranks
from bench.accuracy.jobs.explanations import Places, places_of
from bench.accuracy.jobs.simulate import FAULTS, Fault, fault_of, log_of, machines, simulate
from linkgauge.models.jobs.evaluate import evaluate_job
from linkgauge.models.jobs.placement import read_rows
from linkgauge.models.report import Finding, Report

NODES = (2, 4, 8, 16, 32, 64, 128, 256, 512)
STEPS = 48
AMBIGUOUS = "ambiguous "  # before the outcome of a fault with several possible places
LEAST_RIGHT = {0.02: 0.97, 0.1: 0.9}  # noise -> share of single faults that have one possible place
MOST_WRONG = 0.005  # share of jobs with a wrong subject


def report_of(job: Layout, faults: Sequence[Fault], noise: float, chance: np.random.Generator) -> Report:
    """The report of this job."""
    log = log_of(job, simulate(job, faults, noise, STEPS, chance))
    return evaluate_job(log, 0.0, read_rows(table_of_ranks(job)), machines(job.nodes))


def outcome(fault: Fault, places: Places, report: Report) -> str:
    """right, undecided, or missed, for one fault. If it has several possible places, `ambiguous` before it, and after
    it whether the report names its place among the candidates.
    """
    code, found = "node-slow" if fault.gpus else "bandwidth-low", report.findings
    sure = {one.subject for one in found if one.code == code and one.confidence == "likely"}
    doubtful = [one for one in found if one.code == code and one.confidence == "possible"]
    word = "right" if sure & places.right else "undecided" if doubtful else "missed"
    if not places.others:
        return word
    if word == "undecided" and any(_is_among(places.right, one.candidates) for one in doubtful):
        word = "named"
    elif word == "missed" and any(one.subject == "rates" for one in report.not_checked):
        word = "not judged"
    return AMBIGUOUS + word


def _is_among(right: Collection[str], candidates: Collection[str]) -> bool:
    """Whether one of the names, or the node that it lies in, is a candidate."""
    return any(name in candidates or name.partition("/")[0] in candidates for name in right)


def wrong(faults: Mapping[Fault, Places], found: Sequence[Finding]) -> list[str]:
    """The subjects that the report names for sure and that have no fault."""
    known = {("node-slow" if one.gpus else "bandwidth-low", part) for one in faults for part in faults[one].right}
    return [one.subject for one in found if one.confidence == "likely" and (one.code, one.subject) not in known]


def _drawn(count: int, job: Layout, chance: np.random.Generator) -> list[Fault]:
    """Faults that do not hide each other: at most one late rank, and links that different groups use."""
    found = list[Fault]()
    for kind in chance.permutation(FAULTS):
        fault = fault_of(str(kind), job, chance)
        if fault is not None and len(found) < count and not any(_hides(job, fault, one) for one in found):
            found.append(fault)
    return found


def _hides(job: Layout, one: Fault, other: Fault) -> bool:
    if one.gpus or other.gpus:
        return bool(one.gpus and other.gpus)
    users, others = job.users[one.subject], job.users[other.subject]
    return users <= others or others <= users


def main() -> int:
    """Print the rates. Returns 1 if they are beyond the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, help="for each number of faults and each noise")
    parser.add_argument("--least", type=int, default=2, help="nodes")
    parser.add_argument("--most", type=int, default=64, help="nodes")
    parser.add_argument("--noise", type=float, nargs="*", default=list(LEAST_RIGHT), choices=LEAST_RIGHT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--show", action="store_true", help="each fault that was not named")
    asked = parser.parse_args()
    held = [_run(asked, count, noise) for count in asked.faults for noise in asked.noise]
    print("all bounds hold" if all(held) else "NOT MET")
    return 0 if all(held) else 1


def _run(asked: argparse.Namespace, count: int, noise: float) -> bool:
    """Print the rates of one number of faults at one noise. Returns whether they are within the limits."""
    chance = np.random.default_rng([asked.seed, count, round(100 * noise)])
    sizes = [nodes for nodes in NODES if asked.least <= nodes <= asked.most]
    kinds, wrongs, silent = Counter[tuple[str, str]](), 0, 0
    for _ in range(asked.jobs):
        job = layout(str(chance.choice(LAYOUTS)), int(chance.choice(sizes)))
        faults = _drawn(count, job, chance)
        report = report_of(job, faults, noise, chance)
        found = report.findings
        places = places_of(job, faults)
        bad = wrong(places, found)
        wrongs, silent = wrongs + bool(bad), silent + (not found)
        words = {fault: outcome(fault, places[fault], report) for fault in faults}
        kinds.update((fault.kind, word) for fault, word in words.items())
        if asked.show and (bad or any(not word.endswith("right") for word in words.values())):
            print(f"{job.name}, {job.nodes} nodes: {words}, wrong {bad}", *map(_shown, found), sep="\n    ")
    return _print(kinds, asked.jobs, wrongs, silent, count, noise)


def _print(kinds: Counter[tuple[str, str]], jobs: int, wrongs: int, silent: int, count: int, noise: float) -> bool:
    """Print the counts. Returns whether they are within the limits."""
    total = Counter[str]()
    for (_, word), number in kinds.items():
        total[word] += number
    print(f"{count} fault(s), noise {noise:.0%}: {_summary(total, jobs, wrongs, silent)}")
    for kind in FAULTS if count else ():
        own = Counter({word: kinds[kind, word] for _, word in kinds})
        print(f"    {kind:<10} {own['right']:>4} of {_in_one_place(own):>4} right")
    sys.stdout.flush()
    if count == 0:
        return silent == jobs
    return wrongs <= MOST_WRONG * jobs and total["right"] >= LEAST_RIGHT[noise] * _in_one_place(total)


def _in_one_place(total: Counter[str]) -> int:
    return sum(number for word, number in total.items() if not word.startswith(AMBIGUOUS))


def _summary(total: Counter[str], jobs: int, wrongs: int, silent: int) -> str:
    if not total:
        return f"{silent} of {jobs} jobs without a finding"
    return f"{_counts(total)}; {wrongs} of {jobs} jobs with a wrong subject"


def _counts(total: Counter[str]) -> str:
    shown = _in_one_place(total)
    hidden = total.total() - shown
    first = f"{total['right']} of {shown} right, {total['undecided']} undecided, {total['missed']} missed"
    several = [
        f"{total[f'{AMBIGUOUS}{word}']} {word}" for word in ("named", "not judged", "right", "undecided", "missed")
    ]
    return f"{first};\n    {hidden} in several possible places: {', '.join(several)}"


def _shown(one: Finding) -> str:
    return f"{one.code} {one.confidence} {one.subject}: {one.cause}"


if __name__ == "__main__":
    sys.exit(main())
