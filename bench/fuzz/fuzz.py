"""Readers of dumps given broken texts: python -m bench.fuzz.fuzz [--inputs N] [--engine mutate|atheris] [READER ...]

Samples are those of the tests, and the outputs of ../shared where they are. Each input is made of them by its number
and the seed alone (mutations.py): a run can be repeated. Of each is checked (fuzz_checks.py): nothing is raised; it is
read in time; what is said is well formed and cites the text; some are also cut into parts, as files are, and judged.
Then the expressions of the reader, and the reader itself, are given longer and longer texts (growth.py). "archives" are
archives with hostile members, "shared" the expressions that are no reader's own.

With --engine atheris inputs are searched for by what of a reader they reach, for --seconds each (fuzz_atheris.py); it
needs `pip install --group fuzz`. Exit code 1 where anything failed; --save keeps the inputs that did.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from random import Random

from bench.cost.growth import WORST, grows
from bench.fuzz.fuzz_archives import Archives
from bench.fuzz.fuzz_checks import TooSlow, check, deadline
from bench.fuzz.mutations import changed
from linkgauge.probes.dumps.registry import READERS
from tests.support.samples import samples

ROOT = Path(__file__).parents[2]
SECONDS = 2.0  # of the processor for one input
HANGS = 120  # seconds in which nothing ended: the process ends with its stack
MEMORY = 4 << 30  # bytes of a process
THROUGH, JUDGED = 10, 50  # each so many-th input is cut into parts, and judged
MOST_KEPT = 20  # failures of one reader, after which it is left
ARCHIVES, SHARED = "archives", "shared"
NAMES = (*(one.name for one in READERS), ARCHIVES, SHARED)
Number = Callable[[int], tuple[bytes, Callable[[], float]]]  # an input by its number, and what checks it


@dataclass(slots=True)
class Outcome:
    """What became of one reader."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0  # seconds for one input
    growth: float | None = None  # times as long for four times the text
    failures: list[tuple[str, bytes]] = field(default_factory=list)  # what is wrong, the input


def inputs_of(name: str, seed: int, recorded: bool = True) -> Number:
    """How the inputs of a reader are made and checked."""
    if name == ARCHIVES:
        return Archives(seed).number
    family = next(one for one in READERS if one.name == name)
    every = samples(recorded)
    mine, others = every[name], [text for texts in every.values() for text in texts]
    assert mine, f"no test has a sample of {name}: see tests/support/samples.py"

    def number(count: int) -> tuple[bytes, Callable[[], float]]:
        text = changed(Random(f"{seed} {name} {count}"), mine, others)
        return text.encode(), partial(check, family, text, count % THROUGH == 0, count % JUDGED == 0)

    return number


def fuzz(name: str, number: Number, inputs: int) -> Outcome:
    """So many inputs to one reader; on standard error how far it is."""
    outcome, begun = Outcome(name), time.perf_counter()
    told = begun
    faulthandler.dump_traceback_later(HANGS, exit=True)
    for count in range(inputs):
        text, checked = number(count)
        outcome.inputs += 1
        try:
            with deadline(SECONDS):
                outcome.slowest = max(outcome.slowest, checked())
        except (Exception, TooSlow) as wrong:
            outcome.failures.append((f"input {count}: {type(wrong).__name__}: {wrong}"[:500], text))
            if len(outcome.failures) >= MOST_KEPT:
                break
        if (now := time.perf_counter()) - told > 2:
            told = now
            print(f"{name}: {count + 1} of {inputs}, {len(outcome.failures)} failed", file=sys.stderr)
            faulthandler.dump_traceback_later(HANGS, exit=True)
    faulthandler.cancel_dump_traceback_later()
    outcome.seconds = time.perf_counter() - begun
    return outcome


def mutated(name: str, inputs: int, seed: int) -> Outcome:
    """One reader: its inputs, and how its time grows."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcome = Outcome(name) if name == SHARED else fuzz(name, inputs_of(name, seed), inputs)
    if name != ARCHIVES:
        family = next((one for one in READERS if one.name == name), None)
        outcome.growth, found = grows(family, samples()[name] if family else ())
        outcome.failures += [(one, b"") for one in found]
    return outcome


def guided(name: str, seconds: int, seed: int, save: Path) -> Outcome:
    """One reader by atheris, in a process of its own: it ends with the first failure."""
    command = [sys.executable, "-m", "bench.fuzz.fuzz_atheris", name, str(seconds), str(seed), str(save)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    runs = [int(line.rsplit(maxsplit=1)[1]) for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    outcome = Outcome(name, inputs=sum(runs), seconds=float(seconds))
    if done.returncode:
        told = done.stdout + done.stderr
        outcome.failures.append((told[max(0, told.find("Uncaught Python exception")) :][:2000], b""))
    return outcome


def table(outcomes: list[Outcome], save: Path | None) -> str:
    """A row for each reader, and below what failed."""
    rows = [f"{'reader':16}{'inputs':>9}{'a second':>10}{'slowest ms':>12}{'growth':>8}{'failures':>10}"]
    for one in sorted(outcomes, key=lambda one: NAMES.index(one.name)):
        grown = "" if one.growth is None else f"{one.growth:.1f}"
        rate = one.inputs / one.seconds if one.seconds else 0
        rows.append(f"{one.name:16}{one.inputs:9}{rate:10.0f}{one.slowest * 1e3:12.0f}{grown:>8}{len(one.failures):10}")
    for one in outcomes:
        for number, (wrong, text) in enumerate(one.failures):
            rows.append(f"{one.name}: {wrong}")
            if save and text:
                path = save / f"{one.name}-{number}"
                path.write_bytes(text)
                rows.append(f"  kept in {path}")
    return "\n".join(rows)


def asked() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--inputs", type=int, default=100_000, help="for each reader")
    parser.add_argument("--engine", choices=("mutate", "atheris"), default="mutate")
    parser.add_argument("--seconds", type=int, default=60, help="for each reader, of atheris")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--save", type=Path, help="a folder for inputs that fail")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    if unknown := set(args.readers) - set(NAMES):
        parser.error(f"no reader is called {', '.join(sorted(unknown))}")
    if args.engine == "atheris" and not find_spec("atheris"):
        parser.error("atheris is not installed: pip install --group fuzz (it has wheels for CPython 3.11 to 3.13)")
    return args


def main() -> int:
    """Print the table; the exit code."""
    args = asked()
    print(f"seed {args.seed}, growth may be {WORST:g} for four times the text, {SECONDS:g} s for one input")
    names = args.readers or [name for name in NAMES if args.engine == "mutate" or name != SHARED]
    save = args.save or Path.cwd()
    if args.save:
        save.mkdir(parents=True, exist_ok=True)
    work = (
        partial(mutated, inputs=args.inputs, seed=args.seed)
        if args.engine == "mutate"
        else partial(guided, seconds=args.seconds, seed=args.seed, save=save)
    )
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work, name) for name in names]):
            outcomes.append(done.result())
            print(f"{outcomes[-1].name} is done, {len(outcomes[-1].failures)} failed", file=sys.stderr)
    print(table(outcomes, args.save))
    return int(any(one.failures for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
