"""Bus bandwidth by message size: predictions and published curves.

    python -m bench.accuracy.collective_curves

The curves are in ../shared/facts/msgsize_curves.csv (all_reduce) and in collective_curves.csv beside this file (further
public tables, and all public tables of all_to_all). Each curve is predicted twice: with the whole catalog, and without
the rows of its platform. The exit code is 1 if the errors are above the limits. With --fit, the program prints the
catalog's values for each curve: startup, power and the bus bandwidth of the longest message.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import msgspec
from msgspec import Struct

from linkgauge.models.bandwidth.collective_algorithms import Algorithms, algorithms_of
from linkgauge.models.bandwidth.collectives import bus_bandwidth, bus_factor
from linkgauge.models.bandwidth.message_times import Pace, pace_of, seconds
from linkgauge.models.bandwidth.network_tiers import Level
from linkgauge.models.catalog.collectives import collectives
from linkgauge.models.catalog.links import links

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[2] / "shared" / "facts" / "msgsize_curves.csv"
OURS = HERE / "collective_curves.csv"
MEGABYTE, MEDIAN, MEDIAN_WITHOUT = 10**6, 0.15, 0.25
Curve = list[tuple[int, float]]  # message size in bytes, and bus bandwidth in GB/s


class Setup(Struct, frozen=True):
    """The machine of a curve; rates are nominal, in bytes per second."""

    platform: str
    grade: str
    gpus: int  # per node
    rate: float  # per GPU
    nodes: int = 1
    node_rate: float = 0.0
    switched: bool = False


SETUPS: Mapping[str, Setup] = {
    "4xA100 NV4 mesh allreduce w2": Setup("4xA100 mesh", "nvlink3", 2, 100e9),
    "4xA100 NV4 mesh allreduce w4": Setup("4xA100 mesh", "nvlink3", 4, 300e9),
    "4xGH200 NV6 mesh allreduce w2": Setup("4xGH200", "nvlink4", 2, 150e9),
    "4xGH200 NV6 mesh allreduce w4": Setup("4xGH200", "nvlink4", 4, 450e9),
    "8xA100 allreduce": Setup("stas00 8xA100", "nvlink3", 8, 300e9),
    "NDv4 A100 allreduce busbw": Setup("Azure NDv4", "nvlink3", 8, 300e9),
    "8xH200 allreduce": Setup("8xH200", "nvlink4", 8, 450e9, switched=True),
    "p5 1 node allreduce (NVLS)": Setup("AWS p5", "nvlink4", 8, 450e9, switched=True),
    "8xB200 p6-b200 allreduce": Setup("AWS p6-b200", "nvlink5", 8, 900e9, switched=True),
    "V100 allreduce busbw": Setup("V100 PCIe", "pcie3", 2, 15.754e9),
    # Two hives of four GPUs. A ring uses one xGMI link of 46 GB/s per GPU, or PCIe; the source does not state which.
    "HPE MI100 allreduce busbw": Setup("HPE MI100", "xgmi", 8, 46e9),
    "p4de 2 nodes allreduce": Setup("AWS p4de", "nvlink3", 8, 300e9, 2, 50e9),
    "p5 2 nodes allreduce": Setup("AWS p5", "nvlink4", 8, 450e9, 2, 400e9, switched=True),
    "p6-b200 4 nodes allreduce": Setup("AWS p6-b200", "nvlink5", 8, 900e9, 4, 400e9, switched=True),
    "8xMI300X": Setup("8xMI300X AAC", "xgmi", 8, 448e9),
    "2 nodes of 8xMI300X": Setup("8xMI300X AAC", "xgmi", 8, 448e9, 2, 400e9),
    "8xMI355X Vultr": Setup("8xMI355X Vultr", "xgmi", 8, 537.6e9),
    "8xMI355X OCI": Setup("8xMI355X OCI", "xgmi", 8, 537.6e9),
    "GB300 4 GPUs": Setup("OCI GB300", "nvlink5", 4, 900e9, switched=True),
    "GB300 8 GPUs": Setup("OCI GB300", "nvlink5", 8, 900e9, switched=True),
    "GB300 64 GPUs": Setup("OCI GB300", "nvlink5", 64, 900e9, switched=True),
    "4xH100": Setup("4xH100", "nvlink4", 4, 450e9, switched=True),
    "p5 1 node": Setup("AWS p5", "nvlink4", 8, 450e9, switched=True),
    "p5 2 nodes": Setup("AWS p5", "nvlink4", 8, 450e9, 2, 400e9, switched=True),
    "p5 16 nodes": Setup("AWS p5", "nvlink4", 8, 450e9, 16, 400e9, switched=True),
}


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


def main(arguments: Sequence[str]) -> int:
    """Print the table, or the fits. Returns the exit code."""
    if not SHARED.exists():
        print(f"{SHARED}: not here; nothing to compare with")
        return 0
    curves = read()
    if "--fit" in arguments:
        for (name, op), curve in curves.items():
            print_fit(name, op, curve)
        return 0
    results = [_result(name, op, curve) for (name, op), curve in curves.items()]
    _print_curves(results)
    _print_averages()
    return _print_summary(results)


def read() -> dict[tuple[str, str], Curve]:
    """The curves by data set and operation, each above 1 MB."""
    found = defaultdict[tuple[str, str], Curve](list)
    for path, op, rate in ((SHARED, None, "GBps(busbw or bw)"), (OURS, "op", "busbw_GBps")):
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                size = int(row["size_bytes"])
                if row["dataset"] in SETUPS and size >= MEGABYTE:
                    found[row["dataset"], row[op] if op else "all_reduce"].append((size, float(row[rate])))
    return found


@cache
def known(grade: str, without: str) -> Algorithms:
    """The catalog's values for such links without the rows of a platform."""
    rest = tuple(one for one in links().measured if one.platform != without)
    rows = [one for one in collectives() if one.platform != without]
    return algorithms_of(grade, msgspec.structs.replace(links(), measured=rest), rows)


def predicted(setup: Setup, op: str, size: int, without: str) -> float:
    """Bus bandwidth in GB/s. For AllToAll, the size in nccl-tests is that of one rank."""
    pace, ranks = _pace(setup, op, without), setup.gpus * setup.nodes
    return bus_bandwidth(op, ranks, size, seconds(pace, size * ranks if op == "alltoall" else size)) / 1e9


def _pace(setup: Setup, op: str, without: str) -> Pace:
    group = [Level("node", setup.gpus, setup.rate)]
    group += [Level("fabric", setup.nodes, setup.node_rate)] if setup.nodes > 1 else []
    return pace_of(op, group, known(setup.grade, without), "node", setup.switched)


def _result(name: str, op: str, curve: Curve) -> Result:
    setup = SETUPS[name]
    size, measured = max(curve)
    return Result(
        name=name,
        op=op,
        held=_pace(setup, op, "").held,
        measured=measured,
        predicted=predicted(setup, op, size, ""),
        errors=[predicted(setup, op, size, "") / rate - 1 for size, rate in curve],
        without=[predicted(setup, op, size, setup.platform) / rate - 1 for size, rate in curve],
    )


def _print_curves(results: Iterable[Result]) -> None:
    print(
        "| curve | operation | held by | points | longest, measured | predicted | median error | largest "
        "| without its platform | largest |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for one in results:
        rates = [f"{one.measured:.4g}", f"{one.predicted:.4g}"]
        both = (one.errors, one.without)
        errors = [text for several in both for text in (f"{_middle(several):.1%}", f"{_worst(several):+.0%}")]
        print(f"| {' | '.join([one.name, one.op, one.held, str(len(one.errors)), *rates, *errors])} |")


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
    checks = []
    for op in ("all_reduce", "alltoall"):
        mine = [one for one in results if one.op == op]
        errors = [error for one in mine for error in one.errors]
        without = [error for one in mine for error in one.without]
        for what, several, most in (("", errors, MEDIAN), (", each platform left out", without, MEDIAN_WITHOUT)):
            middle = _middle(several)
            text = (
                f"{op}{what}: median absolute error {middle:.1%} of {len(several)} points of {len(mine)} curves "
                f"(at most {most:.0%})"
            )
            checks.append((text, middle <= most))
    print()
    for text, good in checks:
        print(f"- {'' if good else 'NOT MET: '}{text}")
    return 0 if all(good for _, good in checks) else 1


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
