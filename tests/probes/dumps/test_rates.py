"""Rates as people report them: findings for a slow flow, none for healthy reports, prose and logs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text, recognise
from tests.support.dump_samples import AT

GPUS = range(4)
WRITTEN: dict[str, Callable[[str, str, float], str]] = {
    "arrow": lambda a, b, rate: f"{a} -> {b}: {rate:.1f} GB/s",
    "upper case": lambda a, b, rate: f"{a.upper()}->{b.upper()} {rate:.2f} GB/s",
    "bits": lambda a, b, rate: f"{a} -> {b}  {rate * 8:.0f} Gbit/s",
    "binary": lambda a, b, rate: f"{a} => {b} = {rate * 1e9 / 2**30:.2f} GiB/s",
    "words": lambda a, b, rate: f"- copy {a} to {b} (pinned): {rate:.1f} GB/s",
    "table": lambda a, b, rate: f"| {a} | {b} | {rate:.1f} GB/s |",
    "bold": lambda a, b, rate: f"| **{a}** | **{b}** | **{rate:.1f}** GB/s |",
    "comment": lambda a, b, rate: f"{a} -> {b}: {rate:.1f} GB/s   # second run",
    "quote": lambda a, b, rate: f"> {a} -> {b}: {rate:.1f} GB/s",
}


def findings(text: str) -> tuple[Finding, ...]:
    records = list(read_text("rates.txt", text, AT))
    return evaluate(assemble(records, Site(), AT, origin="dumps")).findings


def report(written: Callable[[str, str, float], str], slow: dict[tuple[int, int], float]) -> str:
    pairs = itertools.permutations(GPUS, 2)
    return "\n".join(written(f"gpu{a}", f"gpu{b}", slow.get((a, b), 48.0)) for a, b in pairs)


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_the_slow_one_of_equal_copies_is_a_finding(written: Callable[[str, str, float], str]) -> None:
    found = [one for one in findings(report(written, {(2, 3): 22.0})) if one.severity != "info"]
    assert [(one.code, one.subject) for one in found] == [("bandwidth-low", "gpu2-gpu3")]
    assert found[0].observed == pytest.approx(22e9, rel=0.01)
    assert findings(report(written, {})) == ()


def test_pairs_of_a_consumer_machine_differ_by_12_percent() -> None:
    text = report(WRITTEN["arrow"], {(0, 3): 42.3, (3, 0): 42.5, (1, 2): 43.0})
    assert {one.severity for one in findings(text)} <= {"info"}


def test_copies_over_other_paths_are_not_compared() -> None:
    rows = [f"gpu{a} gpu{b} {'PIX 26.1' if a // 4 == b // 4 else 'SYS 18.3'} GB/s" for a in range(8) for b in range(a)]
    assert findings("\n".join(rows)) == ()


def test_a_rate_that_fell_after_a_change() -> None:
    (found,) = findings("gpu0 -> gpu1: 48.1 GB/s before, 22.0 GB/s after")
    assert (found.code, found.subject, found.expected, found.basis) == (
        "bandwidth-low",
        "gpu0-gpu1",
        48.1e9,
        "baseline",
    )
    assert findings("gpu0 -> gpu1: 22.0 GB/s before, 48.1 GB/s after") == ()


def test_the_slow_one_of_equal_nodes() -> None:
    rows = [f"node{number:02}  mlx5_3  {98 if number == 5 else 196 + number % 3} Gb/s" for number in range(1, 9)]
    assert [(one.code, one.subject) for one in findings("\n".join(rows))] == [("node-slow", "node05")]
    assert findings("\n".join(rows[:4])) == ()


@pytest.mark.parametrize("name", ["node{}", "hgx-{}", "gpu0{}", "10.0.3.{}", "rack3-node{}"])
@pytest.mark.parametrize(
    "row",
    [
        "{}: {} GB/s",
        "{} busbw={}",
        "{}: busbw {} GB/s",
        "{} | all_reduce | {} GB/s |",
        "{}: 8 x H100, all_reduce busbw {} GB/s",
        "{}: # Avg bus bandwidth    : {} ",
    ],
)
def test_the_slow_one_of_nodes_that_measured_their_own_gpus(name: str, row: str) -> None:
    rows = [row.format(name.format(number), 311.4 if number == 24 else 477.5 + number / 50) for number in range(21, 27)]
    assert [(one.code, one.subject) for one in findings("\n".join(rows))] == [("node-slow", name.format(24))]
    assert findings("\n".join(rows[:3])) == ()


@pytest.mark.parametrize(
    "line",
    [
        "We see 12 GB/s from gpu0 to gpu1 since Monday",
        "Total: 12 GB/s",
        "eth0  12 MB/s",
        "downloaded at 12 MB/s",
        "the link is at 12 GB/s to node 3",
        "[  812.1] nvidia 0000:17:00.0: 126.016 Gb/s available PCIe bandwidth",
        "	 Link 0: 26.562 GB/s",
        "epoch12: 3.2 GB/s",
    ],
)
def test_prose_and_logs_are_no_rates(line: str) -> None:
    assert [one for one in read_text("a", line, AT) if isinstance(one, Observation)] == []
    assert findings(line) == ()


def test_a_row_without_unit_or_ends_is_a_gap() -> None:
    for line in ("gpu0 -> gpu1: 48.1", "0 -> 1: 48.1 GB/s", "NV18: 370 GB/s", "gpu0->gpu1 pageable 6 GB/s"):
        assert recognise(line)
        assert [type(one).__name__ for one in read_text("a", line, AT)] == ["NotChecked"]
