"""How often the report of a job names the right link or rank: python -m bench.accuracy.jobs [--jobs 100].

Each job is drawn at random: nodes, layout, noise, and no fault, one, or two at once. A fault that the job cannot show
(two parts that the same groups use) counts apart: the report must then say so, or name either.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.accuracy.jobs.cluster import LAYOUTS, Layout, layout, table_of_ranks
from bench.accuracy.jobs.simulate import FAULTS, Fault, alike, fault_of, log_of, machines, simulate
from linkgauge.models.jobs.evaluate import evaluate_job
from linkgauge.models.jobs.placement import read_rows
from linkgauge.models.report import Finding

NODES = (2, 4, 8, 16, 32, 64, 128, 256, 512)
STEPS = 48


def findings_of(job: Layout, faults: Sequence[Fault], noise: float, chance: np.random.Generator) -> tuple[Finding, ...]:
    """The findings of the report of this job."""
    log = log_of(job, simulate(job, faults, noise, STEPS, chance))
    return evaluate_job(log, 0.0, read_rows(table_of_ranks(job)), machines(job.nodes)).findings


def outcome(job: Layout, fault: Fault, found: Sequence[Finding]) -> str:
    """right, undecided, or missed, for one fault; `ambiguous` before it if the job cannot show its place."""
    code = "node-slow" if fault.gpus else "bandwidth-low"
    same = alike(job, fault)
    unclear = len(same) > 1
    sure = {one.subject for one in found if one.code == code and one.confidence == "likely"}
    doubtful = any(one.code == code and one.confidence == "possible" for one in found)
    word = "right" if sure & same else "undecided" if doubtful else "missed"
    return f"ambiguous {word}" if unclear else word


def wrong(job: Layout, faults: Sequence[Fault], found: Sequence[Finding]) -> list[str]:
    """The subjects that the report names for sure and that have no fault."""
    known = {("node-slow" if one.gpus else "bandwidth-low", part) for one in faults for part in alike(job, one)}
    return [one.subject for one in found if one.confidence == "likely" and (one.code, one.subject) not in known]


def _drawn(count: int, job: Layout, chance: np.random.Generator) -> list[Fault]:
    """Faults of which none hides another: one late rank, and links of which no groups use only parts of the other."""
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


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, help="for each number of faults and each noise")
    parser.add_argument("--most", type=int, default=64, help="nodes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--show", action="store_true", help="each fault that was not named")
    asked = parser.parse_args()
    sizes = [count for count in NODES if count <= asked.most]
    for noise in (0.02, 0.1):
        for count in asked.faults:
            chance = np.random.default_rng([asked.seed, count, round(100 * noise)])
            results, kinds, named = Counter[str](), Counter[str](), 0
            begun = time.monotonic()
            for _ in range(asked.jobs):
                job = layout(str(chance.choice(LAYOUTS)), int(chance.choice(sizes)))
                faults = _drawn(count, job, chance)
                found = findings_of(job, faults, noise, chance)
                bad = wrong(job, faults, found)
                named += bool(bad)
                results["jobs with a finding"] += bool(found)
                for fault in faults:
                    word = outcome(job, fault, found)
                    results[word] += 1
                    kinds[f"{fault.kind} {word}"] += 1
                    if asked.show and not word.endswith("right"):
                        print(f"  {word}: {job.name} {job.nodes} nodes: {fault}", *map(_shown, found), sep="\n    ")
                if asked.show and bad:
                    print(f"  wrong {bad}: {job.name} {job.nodes} nodes: {faults}", *map(_shown, found), sep="\n    ")
            seconds = time.monotonic() - begun
            print(
                f"noise {noise:.0%}, {count} faults, {asked.jobs} jobs, {seconds:.0f} s: wrong {named}, {dict(results)}"
            )
            print(f"    {dict(sorted(kinds.items()))}")
            sys.stdout.flush()


def _shown(one: Finding) -> str:
    return f"{one.code} {one.confidence} {one.subject}: {one.cause}"


if __name__ == "__main__":
    main()
