"""Bus bandwidth by message size: predictions and published curves.

    python -m bench.accuracy.collectives.collective_curves

The curves are in ../shared/facts/msgsize_curves.csv (all_reduce), and in collective_curves.csv and further_curves.csv
beside this file (public tables, each with its source). Each curve is predicted twice: with the whole catalog, and
without the rows of its platform. No row of the catalog comes from a platform that is held back. The exit code is 1 if
the errors are above the limits. With --fit, the program prints the catalog's values for each other curve: startup,
power and the bus bandwidth of the longest message.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.accuracy.collectives.collective_setups import SETUPS, Setup
from linkgauge.models.bandwidth.collective_algorithms import Algorithms, algorithms_of
from linkgauge.models.bandwidth.collectives import bus_bandwidth, bus_factor
from linkgauge.models.bandwidth.message_times import Pace, bounds, pace_of, seconds
from linkgauge.models.bandwidth.network_tiers import Level
from linkgauge.models.catalog.collectives import collectives
from linkgauge.models.catalog.links import links

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[3] / "shared" / "facts" / "msgsize_curves.csv"
OURS = HERE / "collective_curves.csv"
FURTHER = HERE / "further_curves.csv"
MEGABYTE, MEDIAN, MEDIAN_WITHOUT, INSIDE, NEAR = 10**6, 0.15, 0.25, 0.9, 0.25
Curve = list[tuple[int, float]]  # message size in bytes, and bus bandwidth in GB/s


# Oracle's guides also print a mean for AllToAll: over all sizes from 512 KiB to 16 GiB.
AVERAGES = {"GB300 4 GPUs": 381.478, "GB300 8 GPUs": 407.955, "GB300 64 GPUs": 370.718, "8xMI355X OCI": 236.187}


class Result(Struct, frozen=True):
    """A curve: relative errors of the points above 1 MB, with the whole catalog and without its platform."""

    name: str
    op: str
    held: str
    measured: float  # GB/s of the longest message
    predicted: float
    errors: list[float]
    without: list[float]
    inside: int  # points in low to high, without its platform
    ratio: float  # high / low of the longest message, without its platform
    held_back: bool


def main(arguments: Sequence[str]) -> int:
    """Print the table, or the fits. Returns the exit code."""
    if not SHARED.exists():
        print(f"{SHARED}: not here; nothing to compare with")
        return 0
    curves = read()
    if "--fit" in arguments:
        for (name, op), curve in curves.items():
            if not SETUPS[name].held_back:
                print_fit(name, op, curve)
        return 0
    results = [_result(name, op, curve) for (name, op), curve in curves.items()]
    _print_curves(results)
    _print_averages()
    return _print_summary(results)


def read() -> dict[tuple[str, str], Curve]:
    """The curves by data set and operation, each above 1 MB."""
    found = defaultdict[tuple[str, str], Curve](list)
    ours = [(path, "op", "busbw_GBps") for path in (OURS, FURTHER)]
    for path, op, rate in ((SHARED, None, "GBps(busbw or bw)"), *ours):
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                size = int(row["size_bytes"])
                if row["dataset"] in SETUPS and size >= MEGABYTE:
                    found[row["dataset"], row[op] if op else "all_reduce"].append((size, float(row[rate])))
    return found


@cache
def known(setup: Setup, without: str) -> Algorithms:
    """The catalog's values for such a machine without the rows of a platform."""
    rest = tuple(one for one in links().measured if one.platform != without)
    rows = [one for one in collectives() if one.platform != without]
    there = msgspec.structs.replace(links(), measured=rest)
    found = algorithms_of(setup.grade, there, rows, setup.machine, setup.transport)
    far = {op: msgspec.structs.replace(one, ll128=setup.ll128) for op, one in found.far.items()}
    return msgspec.structs.replace(found, far=far)


def predicted(setup: Setup, op: str, size: int, without: str) -> float:
    """Bus bandwidth in GB/s. For AllToAll, the size in nccl-tests is that of one rank."""
    return _bus(setup, op, size, _pace(setup, op, without))


def bounds_of(setup: Setup, op: str, size: int, without: str) -> tuple[float, float]:
    """Low and high bus bandwidth in GB/s."""
    slow, _, fast = bounds(op, _group(setup), known(setup, without), "node", setup.switched)
    return _bus(setup, op, size, slow), _bus(setup, op, size, fast)


def _bus(setup: Setup, op: str, size: int, pace: Pace) -> float:
    ranks = setup.gpus * setup.nodes
    return bus_bandwidth(op, ranks, size, seconds(pace, size * ranks if op == "alltoall" else size)) / 1e9


def _pace(setup: Setup, op: str, without: str) -> Pace:
    return pace_of(op, _group(setup), known(setup, without), "node", setup.switched)


def _group(setup: Setup) -> list[Level]:
    near = Level("node", setup.gpus, setup.rate)
    return [near, Level("fabric", setup.nodes, setup.node_rate)] if setup.nodes > 1 else [near]


def _result(name: str, op: str, curve: Curve) -> Result:
    setup = SETUPS[name]
    size, measured = max(curve)
    limits = [bounds_of(setup, op, size, setup.platform) for size, _ in curve]
    return Result(
        name=name,
        op=op,
        held=_pace(setup, op, "").held,
        measured=measured,
        predicted=predicted(setup, op, size, ""),
        errors=[predicted(setup, op, size, "") / rate - 1 for size, rate in curve],
        without=[predicted(setup, op, size, setup.platform) / rate - 1 for size, rate in curve],
        inside=sum(low <= rate <= high for (_, rate), (low, high) in zip(curve, limits, strict=True)),
        ratio=limits[curve.index((size, measured))][1] / limits[curve.index((size, measured))][0],
        held_back=setup.held_back,
    )


def _print_curves(results: Iterable[Result]) -> None:
    print(
        "| curve | operation | held by | points | longest, measured | predicted | median error | largest "
        "| without its platform | largest | in low to high | high/low |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for one in results:
        rates = [f"{one.measured:.4g}", f"{one.predicted:.4g}"]
        both = (one.errors, one.without)
        errors = [text for several in both for text in (f"{_middle(several):.1%}", f"{_worst(several):+.0%}")]
        held = [str(one.inside), f"{one.ratio:.2f}"]
        name = f"{one.name} (held back)" if one.held_back else one.name
        print(f"| {' | '.join([name, one.op, one.held, str(len(one.errors)), *rates, *errors, *held])} |")


def _print_averages() -> None:
    print("\n| alltoall, mean of 512 KiB to 16 GiB | measured | predicted | error |\n|---|---:|---:|---:|")
    for name, measured in AVERAGES.items():
        mean = statistics.mean(predicted(SETUPS[name], "alltoall", 1 << power, "") for power in range(19, 35))
        print(f"| {name} | {measured:.4g} | {mean:.4g} | {mean / measured - 1:+.1%} |")


def _middle(errors: Iterable[float]) -> float:
    return statistics.median(abs(error) for error in errors)


def _worst(errors: Iterable[float]) -> float:
    return max(errors, key=abs)


def _print_summary(results: Sequence[Result]) -> int:
    fitted = [one for one in results if not one.held_back]
    checks = []
    for op in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        mine = [one for one in fitted if one.op == op]
        errors = [error for one in mine for error in one.errors]
        without = [error for one in mine for error in one.without]
        for what, several, most in (("", errors, MEDIAN), (", each platform left out", without, MEDIAN_WITHOUT)):
            middle = _middle(several)
            text = (
                f"{op}{what}: median absolute error {middle:.1%} of {len(several)} points of {len(mine)} curves "
                f"(at most {most:.0%})"
            )
            checks.append((text, middle <= most))
    inside, points = sum(one.inside for one in fitted), sum(len(one.errors) for one in fitted)
    ratios = [one.ratio for one in fitted if one.held == "node"]
    text = f"each platform left out: {inside} of {points} points in low to high (at least {INSIDE:.0%}); "
    text += f"high/low of the longest message inside a node: median {statistics.median(ratios):.2f}"
    checks.append((text, inside >= INSIDE * points))
    print()
    for text, good in checks:
        print(f"- {'' if good else 'NOT MET: '}{text}")
    _print_held_back([one for one in results if one.held_back])
    return 0 if all(good for _, good in checks) else 1


def _print_held_back(results: Sequence[Result]) -> None:
    later = [one for one in results if SETUPS[one.name].later]
    for what, some in (("held back", results), ("of these, collected later", later)):
        errors = [abs(error) for one in some for error in one.errors]
        near, inside = sum(error <= NEAR for error in errors), sum(one.inside for one in some)
        platforms = len({SETUPS[one.name].platform for one in some})
        print(
            f"- {what}, {len(some)} curves of {platforms} platforms: median absolute error {_middle(errors):.1%}, "
            f"{near} of {len(errors)} points within {NEAR:.0%}, {inside} in low to high"
        )


def print_fit(name: str, op: str, curve: Curve) -> None:
    """Print the startup and power of the formula in message_times.py that fit a curve best (least squares of
    logarithms).
    """
    setup = SETUPS[name]
    factor = bus_factor(op, setup.gpus * setup.nodes)
    longest = max(curve)[1]
    if len(curve) < 8:  # too few points for a curve
        print(f"{name} {op}: bus {longest:g} GB/s")
        return
    points = [(size * factor / 1e9, size * factor / 1e9 / rate) for size, rate in curve]  # GB on the wire, seconds
    best = max(rate for _, rate in curve)
    _, startup, power = min(
        product(
            [best * share / 100 for share in range(96, 114, 2)],
            [10 ** (exponent / 50) for exponent in range(-260, -144)],
            [power / 20 for power in range(8, 21)],
        ),
        key=lambda tried: _misfit(points, *tried),
    )
    print(f"{name} {op}: startup {startup * 1e6:.3g} us, power {power:g}, bus {longest:g} GB/s")


def _misfit(points: Sequence[tuple[float, float]], rate: float, startup: float, power: float) -> float:
    begun = startup**power
    return sum(math.log((moved / rate + begun * (moved / rate) ** (1 - power)) / took) ** 2 for moved, took in points)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
