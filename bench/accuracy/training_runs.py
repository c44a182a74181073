"""Step times of published training runs, and those of plans: python -m bench.accuracy.training_runs

The runs are in training_runs.toml. Half of their sources are held back: no number of the model is fitted to them. The
published layouts are taken as they are, also those with uneven stages, which `linkgauge plan` refuses.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.accuracy.plan import cluster
from linkgauge.models.catalog import machines
from linkgauge.models.site.schema import Network
from linkgauge.models.training.job_spec import read_job
from linkgauge.models.training.step_time import Step, step_of

RUNS = Path(__file__).resolve().with_suffix(".toml")


class Published(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One run. training_runs.toml defines the fields."""

    model: str
    machine: str
    gpus: int
    sequences: int
    sequence: int | None = None
    layout: str
    seconds: float | None = None
    tokens: float | None = None
    source: str
    held_back: bool = False
    round: int = 1  # 2 and 3 were collected after the formulas of the round before were chosen


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    network: tuple[Network, ...]
    run: tuple[Published, ...]


class Result(Struct, frozen=True):
    """The step of a published run, with the published and the estimated seconds."""

    run: Published
    published: float
    step: Step
    experts: bool

    @property
    def error(self) -> float:
        """Error of the estimated step time, as a share of the published one."""
        return self.step.usual / self.published - 1

    @property
    def inside(self) -> bool:
        """Whether the published time is between the fastest and the slowest."""
        return self.step.fastest <= self.published <= self.step.slowest


def main() -> int:
    """Print the table. Returns the exit code."""
    results = compared()
    _print_runs(results)
    print()
    _print_summary("fitted sources", [one for one in results if not one.run.held_back])
    _print_summary("held back", [one for one in results if one.run.held_back])
    for number in (1, 2, 3):
        mine = [one for one in results if one.run.held_back and one.run.round == number]
        _print_summary(f"of these, round {number}", mine)
    _print_repeated(results)
    return 0


def read() -> _File:
    """All runs and their models."""
    return msgspec.toml.decode(RUNS.read_bytes(), type=_File)


def compared() -> list[Result]:
    """Each run beside its estimate."""
    file = read()
    return [_result(run, file.network) for run in file.run]


def _result(run: Published, further: Sequence[Network]) -> Result:
    batch = f"gbs={run.sequences}" + (f",seq={run.sequence}" if run.sequence else "")
    spec = read_job(f"{run.model},{run.layout},{batch}", further)
    per_node = next(one.gpus for one in machines() if one.name == run.machine)
    assert per_node, run.machine
    where = cluster(run.machine, run.gpus // per_node)
    step = step_of(spec.job, spec.layout(run.gpus), where)
    seconds = run.seconds or spec.job.tokens / (run.gpus * (run.tokens or 1.0))
    return Result(run, seconds, step, spec.job.network.experts > 0)


def _print_runs(results: Sequence[Result]) -> None:
    print("| run | GPUs | layout | published | estimated | off | fastest to slowest | inside |")
    print("|---|---|---|---:|---:|---:|---:|---|")
    for one in results:
        name = f"{one.run.model}{' (held back)' if one.run.held_back else ''}"
        times = [f"{seconds:.3g} s" for seconds in (one.published, one.step.usual)]
        span = f"{one.step.fastest:.3g} to {one.step.slowest:.3g} s"
        cells = [name, f"{one.run.gpus}, {one.run.machine}", one.run.layout, *times, f"{one.error:+.0%}", span]
        print(f"| {' | '.join([*cells, 'yes' if one.inside else 'no'])} |")


def _print_summary(what: str, results: Sequence[Result]) -> None:
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
            f"- {what}, {kind}: median absolute error {middle:.0%} of {len(mine)} runs, {inside} between fastest and "
            f"slowest, median slowest/fastest {ratio:.2f}"
        )


def _print_repeated(results: Sequence[Result]) -> None:
    """By how much runs differ whose model, machine and layout are equal, and that an estimate cannot tell apart."""
    equal: dict[tuple[str, str, str, float], list[float]] = {}
    for one in results:
        what = one.run.model, one.run.machine, one.run.layout, one.run.sequences / one.run.gpus
        equal.setdefault(what, []).append(one.published)
    factors = [max(times) / min(times) for times in equal.values() if len(times) > 1]
    print(
        f"- published times of equal layouts, {len(factors)} layouts: longest/shortest has median "
        f"{statistics.median(factors):.2f}, above 1.2 for {sum(one > 1.2 for one in factors)}, at most "
        f"{max(factors):.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
