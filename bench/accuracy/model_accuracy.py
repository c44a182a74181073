"""Predictions of the model and published measurements: python -m bench.accuracy.model_accuracy

Each row of ../shared/facts/achievable.csv with a plain number becomes a topology and flows (configurations.py). It is
predicted twice: with all of links.toml, and without the rows of the machine of the measurement. The exit code is 1 if
the errors are above the limits.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.accuracy.configurations import MACHINES, Configuration, Row, measured, state
from linkgauge.models.bandwidth.efficiency import attainable
from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.catalog.links import Links, Measured, links

FACTS = Path(__file__).resolve().parents[3] / "shared" / "facts" / "achievable.csv"
FEWEST, MEDIAN, NINETIETH, MEDIAN_WITHOUT, WIDEST, INSIDE = 60, 0.05, 0.12, 0.10, 1.4, 0.9


class Result(Struct, frozen=True):
    """A row, its prediction in GB/s, and the prediction without its own machine."""

    row: Row
    measured: float
    low: float
    typical: float
    high: float
    bottleneck: str
    without: tuple[float, float, float] | None  # low, typical and high
    platforms: tuple[str, ...]  # platforms in links.toml whose rows are this measurement

    @property
    def error(self) -> float:
        """The error of the prediction, as a share of the measured rate."""
        return self.typical / self.measured - 1


def main() -> int:
    """Print the table. Returns the exit code."""
    if not FACTS.exists():
        print(f"{FACTS}: not here; nothing to compare with")
        return 0
    with FACTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = [(row, value) for row in rows if (value := measured(row)) is not None]
    results, unstated = [], []
    for row, value in numbers:
        stated = state(row)
        if isinstance(stated, str):
            unstated.append((row, stated))
        else:
            results.append(_result(row, value / (2 if stated.halved else 1), stated))
    _print_rows(results)
    _print_unstated(unstated)
    return _print_summary(len(rows), len(numbers), results)


def _result(row: Row, value: float, stated: Configuration) -> Result:
    predicted = _predict(stated, None)
    assert predicted, row
    low, typical, high, bottleneck, grade = predicted
    named = {name for text, name in MACHINES.items() if text in row["platform"]}
    known = [one for one in links().measured if _is_it(one, grade, value) or one.platform in named]
    mine = tuple(dict.fromkeys(one.platform for one in known))
    rest = tuple(one for one in links().measured if one.platform not in mine)
    without = _predict(stated, msgspec.structs.replace(links(), measured=rest)) if mine else None
    return Result(row, value, low, typical, high, bottleneck, without[:3] if without else None, mine)


def _is_it(one: Measured, grade: str, value: float) -> bool:
    return grade.startswith(one.grade) and abs(one.rate / 1e9 / value - 1) < 0.002


def _predict(stated: Configuration, known: Links | None) -> tuple[float, float, float, str, str] | None:
    """Low, typical and high rate in GB/s, the bottleneck and its grade. None if the model has no data."""
    found = predict(stated.topology, stated.flows, known)
    mine = [found[flow] for flow in (stated.flows if stated.flow.op == "sum" else (stated.flow,)) if flow in found]
    if not mine:
        return None
    link = mine[0].bottleneck.links[0]
    low, typical, high = (sum(getattr(one, name) for one in mine) / 1e9 for name in ("low", "typical", "high"))
    return low, typical, high, link.id, link.grade


def _print_rows(results: list[Result]) -> None:
    print("| link | generation | platform | measured | low | predicted | high | error | without it | sets a share |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---|")
    for one in results:
        without = "" if one.without is None else f"{one.without[1] / one.measured - 1:+.1%}"
        what = [one.row["link"], one.row["generation"], one.row["platform"][:40]]
        rates = [f"{rate:.4g}" for rate in (one.measured, one.low, one.typical, one.high)]
        _print_cells([*what, *rates, f"{one.error:+.1%}", without, ", ".join(one.platforms)])


def _print_unstated(unstated: Sequence[tuple[Row, str]]) -> None:
    print("\n| not stated | generation | platform | measured | why |\n|---|---|---|---|---|")
    for row, why in unstated:
        _print_cells([row["link"], row["generation"], row["platform"][:40], row["achieved_GBps"], why])


def _print_cells(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |")


def _print_summary(rows: int, numbers: int, results: list[Result]) -> int:
    errors = sorted(abs(one.error) for one in results)
    left_out = [(one.measured, one.without) for one in results if one.without]
    without = [abs(typical / rate - 1) for rate, (_, typical, _) in left_out]
    inside = sum(low <= rate <= high for rate, (low, _, high) in left_out)
    ratio = statistics.median(high / low for _, (low, _, high) in left_out)
    ninetieth = errors[int(0.9 * (len(errors) - 1))]
    below = [one for one in results if one.measured < one.low]
    median, median_without = statistics.median(errors), statistics.median(without)
    wide = _print_classes()
    checks = [
        (f"{rows} rows, {numbers} plain numbers, {len(results)} stated (at least {FEWEST})", len(results) >= FEWEST),
        (f"median absolute error {median:.1%} (at most {MEDIAN:.0%})", median <= MEDIAN),
        (f"90th percentile {ninetieth:.1%} (at most {NINETIETH:.0%})", ninetieth <= NINETIETH),
        (f"rows below low: {len(below)} (none)", not below),
        (
            f"each machine left out: median {median_without:.1%} of {len(without)} rows "
            f"(at most {MEDIAN_WITHOUT:.0%}); of {len(results) - len(without)} nothing is left to predict them from",
            median_without <= MEDIAN_WITHOUT,
        ),
        (
            f"each machine left out: {inside} of {len(left_out)} measured rates in low to high "
            f"(at least {INSIDE:.0%}); median high/low {ratio:.2f}",
            inside >= INSIDE * len(left_out),
        ),
        (f"classes of three machines and more that are wider than {WIDEST}: {', '.join(wide) or 'none'}", not wide),
    ]
    print()
    for text, good in checks:
        print(f"- {'' if good else 'NOT MET: '}{text}")
    return 0 if all(good for _, good in checks) else 1


def _print_classes() -> list[str]:
    """Print the shares of each class, and the classes of three or more machines whose interval is too wide."""
    rows = defaultdict[tuple[str, str, str, bool], set[str]](set)
    for one in links().measured:
        rows[one.grade, one.op, one.towards, one.duplex].add(one.platform)
    print("\n| class | operation | towards | both ways | machines | low | typical | high | high/low |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    wide = []
    for (grade, op, towards, duplex), platforms in rows.items():
        reach = attainable(grade, op, towards, duplex)
        assert reach
        ratio = reach.high / reach.low
        wide += [f"{grade} {op} {towards}".strip()] if len(platforms) >= 3 and ratio > WIDEST else []
        shares = [f"{share:.3f}" for share in (reach.low, reach.typical, reach.high)]
        _print_cells([grade, op, towards, "yes" if duplex else "", str(len(platforms)), *shares, f"{ratio:.2f}"])
    return wide


if __name__ == "__main__":
    sys.exit(main())
