"""Fuzzing of dump readers with broken texts: python -m bench.fuzz.fuzz [--inputs N] [--engine mutate|atheris] [READER
...]

Samples are those of the tests and, if present, the outputs of ../shared. Each input depends only on the samples, its
number and the seed (mutations.py), so a run can be repeated. fuzz_checks.py checks each input: no exception is raised;
reading ends in time; records are well formed and cite the text. Some inputs are also split into parts, like files, and
evaluated. Then the expressions of the reader, and the reader itself, get longer and longer texts (growth.py).
The name "archives" means archives with hostile members, "shared" for the expressions that do not belong to one reader.

With --engine atheris, coverage of the reader guides the inputs, for --seconds per reader (fuzz_atheris.py). This needs
`pip install --group fuzz`. The exit code is 1 if anything failed. --save keeps the failed inputs.
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

SECONDS = 2.0  # processor time per input
HANGS = 120  # seconds without progress after which the process ends with its stack
MEMORY = 4 << 30  # bytes per process
THROUGH, JUDGED = 10, 50  # every 10th input is split into parts, every 50th is evaluated
MOST_KEPT = 20  # failures of one reader after which it is skipped
ARCHIVES, SHARED = "archives", "shared"
NAMES = (*(one.name for one in READERS), ARCHIVES, SHARED)
Number = Callable[[int], tuple[bytes, Callable[[], float]]]  # an input by its number, and its check


@dataclass(slots=True)
class Outcome:
    """The result of one reader."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0  # seconds for one input
    growth: float | None = None  # ratio of times for four times the text
    failures: list[tuple[str, bytes]] = field(default_factory=list)  # error, input


def inputs_of(name: str, seed: int, recorded: bool = True) -> Number:
    """The function that makes and checks the inputs of a reader."""
    if name == ARCHIVES:
        return Archives(seed).number
    reader = next(one for one in READERS if one.name == name)
    every = samples(recorded)
    mine, others = every[name], [text for texts in every.values() for text in texts]
    assert mine, f"no test has a sample of {name}: see tests/support/samples.py"

    def number(count: int) -> tuple[bytes, Callable[[], float]]:
        text = changed(Random(f"{seed} {name} {count}"), mine, others)
        return text.encode(), partial(check, reader, text, count % THROUGH == 0, count % JUDGED == 0)

    return number


def fuzz(name: str, number: Number, inputs: int) -> Outcome:
    """Give this number of inputs to one reader. Progress goes to standard error."""
    outcome, begun = Outcome(name), time.perf_counter()
    reported = begun
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
        if (now := time.perf_counter()) - reported > 2:
            reported = now
            print(f"{name}: {count + 1} of {inputs}, {len(outcome.failures)} failed", file=sys.stderr)
            faulthandler.dump_traceback_later(HANGS, exit=True)
    faulthandler.cancel_dump_traceback_later()
    outcome.seconds = time.perf_counter() - begun
    return outcome


def mutated(name: str, inputs: int, seed: int, growth: bool) -> Outcome:
    """Fuzz one reader, and measure the growth of its time if asked to."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcome = Outcome(name) if name == SHARED else fuzz(name, inputs_of(name, seed), inputs)
    if growth and name != ARCHIVES:
        reader = next((one for one in READERS if one.name == name), None)
        outcome.growth, found = grows(reader, samples()[name] if reader else ())
        outcome.failures += [(one, b"") for one in found]
    return outcome


def guided(name: str, seconds: int, seed: int, save: Path) -> Outcome:
    """Fuzz one reader with atheris in a separate process, which ends at the first failure."""
    command = [sys.executable, "-m", "bench.fuzz.fuzz_atheris", name, str(seconds), str(seed), str(save)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    runs = [int(line.rsplit(maxsplit=1)[1]) for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    outcome = Outcome(name, inputs=sum(runs), seconds=float(seconds))
    if done.returncode:
        output = done.stdout + done.stderr
        outcome.failures.append((output[max(0, output.find("Uncaught Python exception")) :][:2000], b""))
    return outcome


def table(outcomes: list[Outcome], save: Path | None) -> str:
    """A row per reader, followed by the failures."""
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


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--inputs", type=int, default=100_000, help="for each reader")
    parser.add_argument("--no-growth", dest="growth", action="store_false", help="do not measure the growth of times")
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
    """Print the table. Returns the exit code."""
    args = arguments()
    print(f"seed {args.seed}, growth may be {WORST:g} for four times the text, {SECONDS:g} s for one input")
    names = args.readers or [name for name in NAMES if args.engine == "mutate" or name != SHARED]
    save = args.save or Path.cwd()
    if args.save:
        save.mkdir(parents=True, exist_ok=True)
    work = (
        partial(mutated, inputs=args.inputs, seed=args.seed, growth=args.growth)
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
