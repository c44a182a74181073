"""Step times of published training runs, and those of plans: python -m bench.accuracy.trainings.training_runs [--runs]

training_runs.csv has a run in each row: its layout as in `linkgauge plan` (FSDP is zero=3), and its seconds per step or
its tokens per second and GPU. Runs of a higher round were collected after the formulas of the round before were chosen.
A "recipe" is a result of the machine's or the program's maker, or of an operator; a "trial" is one row of an experiment
(notes of a pull request, a comparison of libraries for messages, a GPU with a lower power limit), and decides nothing.

Of the sources of recipes in alphabetical order, every second one is held back: no number of the model is fitted to it.
The words deepep, hybridep, overlap, graphs, attention-graphs and fused are those of the recipe's file near the time of
the page, or of the page. The published layouts are taken as they are, also those with uneven stages, which `linkgauge
plan` refuses. Rates in TFLOP/s are converted with the page's own FLOP of a token.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from bench.accuracy.plan import cluster
from linkgauge.models.catalog import machines
from linkgauge.models.site.schema import Network
from linkgauge.models.training.cluster import Cluster
from linkgauge.models.training.job_spec import read_job
from linkgauge.models.training.parallelism import Job, Layout
from linkgauge.models.training.step_time import Paces, Step, step_of

HERE = Path(__file__).resolve().parent


class Published(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of training_runs.csv."""

    round: int
    kind: Literal["recipe", "trial"]
    model: str
    machine: str
    gpus: int
    sequences: int  # per step
    sequence: int | None  # tokens of one, if not that of the model
    layout: str
    seconds: float | None  # per step
    tokens: float | None  # per second and GPU
    source: str
    note: str


class Run(Struct, frozen=True):
    """A run as the model takes it. `paces` is shared by the runs of one cluster."""

    published: Published
    held_back: bool
    job: Job
    layout: Layout
    cluster: Cluster
    paces: Paces
    seconds: float


class Result(Struct, frozen=True):
    """A run beside its estimate."""

    run: Run
    step: Step

    @property
    def experts(self) -> bool:
        """Whether the model is a mixture of experts."""
        return self.run.job.network.experts > 0

    @property
    def error(self) -> float:
        """Error of the estimated step time, as a share of the published one."""
        return self.step.usual / self.run.seconds - 1

    @property
    def inside(self) -> bool:
        """Whether the published time is between the fastest and the slowest."""
        return self.step.fastest <= self.run.seconds <= self.step.slowest


class _Networks(Struct, frozen=True, forbid_unknown_fields=True):
    network: tuple[Network, ...]


def main(arguments: Sequence[str]) -> int:
    """Print the table of the sources, or of the runs. Returns the exit code."""
    results = compared(runs())
    if "--runs" in arguments:
        _print_runs(results)
        return 0
    _print_sources(results)
    print()
    recipes = [one for one in results if one.run.published.kind == "recipe"]
    held = [one for one in recipes if one.run.held_back]
    print_summary("fitted sources", [one for one in recipes if not one.run.held_back])
    print_summary("held back", held)
    for number in (3, 4):
        mine = [one for one in held if (one.run.published.round == 4) == (number == 4)]
        print_summary("of these, round 4" if number == 4 else "of these, rounds 1 to 3", mine)
    print_summary("trials", [one for one in results if one.run.published.kind == "trial"])
    _print_repeated(recipes)
    return 0


@cache
def runs() -> tuple[Run, ...]:
    """All runs."""
    further = msgspec.toml.decode((HERE / "training_networks.toml").read_bytes(), type=_Networks).network
    with (HERE / "training_runs.csv").open(newline="") as file:
        rows = [{key: value or None for key, value in row.items()} for row in csv.DictReader(file)]
    published = [msgspec.convert({**row, "note": row["note"] or ""}, Published, strict=False) for row in rows]
    recipes = {one.source for one in published if one.kind == "recipe"}
    held = set(sorted(recipes, key=lambda one: one.removeprefix("https://").lower())[1::2])
    paces: dict[tuple[str, int], Paces] = {}
    return tuple(
        _run(one, one.source in held, further, paces.setdefault((one.machine, one.gpus), {})) for one in published
    )


def _run(row: Published, held: bool, further: Sequence[Network], paces: Paces) -> Run:
    batch = f"gbs={row.sequences}" + (f",seq={row.sequence}" if row.sequence else "")
    spec = read_job(f"{row.model},{row.layout},{batch}", further)
    where = _cluster(row.machine, row.gpus)
    seconds = row.seconds or spec.job.tokens / (row.gpus * (row.tokens or 1.0))
    return Run(row, held, spec.job, spec.layout(row.gpus), where, paces, seconds)


@cache
def _cluster(machine: str, gpus: int) -> Cluster:
    per_node = next(one.gpus for one in machines() if one.name == machine)
    assert per_node, machine
    return cluster(machine, max(1, gpus // per_node))


def compared(these: Sequence[Run]) -> list[Result]:
    """Each run beside its estimate."""
    return [Result(one, step_of(one.job, one.layout, one.cluster, one.paces)) for one in these]


def _print_sources(results: Sequence[Result]) -> None:
    by_source: dict[str, list[Result]] = {}
    for one in results:
        by_source.setdefault(one.run.published.source, []).append(one)
    print("| source | kind | runs | mixtures | median error | lowest to highest | inside |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for source, mine in sorted(by_source.items(), key=lambda item: item[0].removeprefix("https://").lower()):
        kind = "held back" if mine[0].run.held_back else mine[0].run.published.kind.replace("recipe", "fitted")
        errors = [one.error for one in mine]
        spread = f"{min(errors):+.0%} to {max(errors):+.0%}"
        numbers = [len(mine), sum(one.experts for one in mine), f"{statistics.median(errors):+.0%}", spread]
        cells = [source.replace("https://github.com/", ""), kind, *map(str, numbers), str(sum(o.inside for o in mine))]
        print(f"| {' | '.join(cells)} |")


def _print_runs(results: Sequence[Result]) -> None:
    print("| run | GPUs | layout | published | estimated | off | fastest to slowest | inside |")
    print("|---|---|---|---:|---:|---:|---:|---|")
    for one in results:
        row = one.run.published
        name = row.model + (" (held back)" if one.run.held_back else " (trial)" if row.kind == "trial" else "")
        times = [f"{seconds:.3g} s" for seconds in (one.run.seconds, one.step.usual)]
        span = f"{one.step.fastest:.3g} to {one.step.slowest:.3g} s"
        cells = [name, f"{row.gpus}, {row.machine}", row.layout, *times, f"{one.error:+.0%}", span]
        print(f"| {' | '.join([*cells, 'yes' if one.inside else 'no'])} |")


def print_summary(what: str, results: Sequence[Result]) -> None:
    """Median error, runs inside, and width of the range: of mixtures, of dense models, and of all."""
    for kind, mine in (
        ("mixtures of experts", [one for one in results if one.experts]),
        ("dense models", [one for one in results if not one.experts]),
        ("all", results),
    ):
        if not mine:
            continue
        middle = statistics.median(abs(one.error) for one in mine)
        inside = sum(one.inside for one in mine)
        ratio = statistics.median(one.step.slowest / one.step.fastest for one in mine)
        print(
            f"- {what}, {kind}: median absolute error {middle:.1%} of {len(mine)} runs, {inside} "
            f"({inside / len(mine):.0%}) between fastest and slowest, median slowest/fastest {ratio:.2f}"
        )


def _print_repeated(results: Sequence[Result]) -> None:
    """By how much runs differ whose model, machine and layout are equal, and that an estimate cannot tell apart."""
    equal: dict[tuple[str, str, str, float], list[float]] = {}
    for one in results:
        row = one.run.published
        what = row.model, row.machine, row.layout, row.sequences / row.gpus
        equal.setdefault(what, []).append(one.run.seconds)
    factors = [max(times) / min(times) for times in equal.values() if len(times) > 1]
    print(
        f"- published times of equal layouts, {len(factors)} layouts: longest/shortest has median "
        f"{statistics.median(factors):.2f}, above 1.2 for {sum(one > 1.2 for one in factors)}, at most "
        f"{max(factors):.2f}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
