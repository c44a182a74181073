"""Rates in short forms: one direction for several GPUs, expected numbers, changes, tables, types of paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Flow, Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.dump_samples import AT

UNITS = {"GB/s": 1.0, "GiB/s": 1e9 / 2**30, "Gbit/s": 8.0, "Gb/s": 8.0, "MB/s": 1e3, "GBps": 1.0}


def report_of(text: str) -> Report:
    return evaluate(assemble(list(read_text("rates.txt", text, AT)), Site(), AT, origin="dumps"))


def serious(text: str) -> list[Finding]:
    return [one for one in report_of(text).findings if one.severity != "info"]


def flows(text: str) -> dict[tuple[str, ...], float]:
    """Rates in GB/s by the ends of their flows."""
    records = read_text("rates.txt", text, AT)
    return {
        one.about.ends: one.value / 1e9
        for one in records
        if isinstance(one, Observation) and isinstance(one.about, Flow) and one.quantity == "rate"
    }


def written(value: float, unit: str, glue: str = " ") -> str:
    return f"{value * UNITS[unit]:.1f}{glue}{unit}"


LISTS: dict[str, Callable[[Sequence[str], Sequence[str]], str]] = {
    "direction first": lambda names, rates: "H2D: " + ", ".join(f"{a} {b}" for a, b in zip(names, rates, strict=True)),
    "direction last": lambda names, rates: " ".join(f"{a}={b}" for a, b in zip(names, rates, strict=True)) + " (h2d)",
    "colons": lambda names, rates: "h2d pinned | " + "; ".join(f"{a}: {b}" for a, b in zip(names, rates, strict=True)),
    "a line each": lambda names, rates: "\n".join(f"h2d {a} {b}" for a, b in zip(names, rates, strict=True)),
    "rate and direction": lambda names, rates: "\n".join(f"{a}: {b} H2D" for a, b in zip(names, rates, strict=True)),
}
NAMES = {
    "upper": [f"GPU{n}" for n in range(4)],
    "lower": [f"gpu{n}" for n in range(4)],
    "blank": [f"GPU {n}" for n in range(4)],
    "cuda": [f"cuda:{n}" for n in range(4)],
    "address": [f"0000:{n}3:00.0" for n in (1, 4, 5, 9)],
    "short address": [f"{n}b:00.0" for n in (1, 4, 5, 9)],
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("form", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("slow", range(4))
def test_one_direction_for_several_gpus(
    form: Callable[[Sequence[str], Sequence[str]], str], names: Sequence[str], unit: str, slow: int
) -> None:
    for glue in (" ", ""):
        rates = [written(27.4 if place == slow else 55.0 + place / 10, unit, glue) for place in range(4)]
        found = serious(form(names, rates))
        assert [(one.code, one.severity) for one in found] == [("bandwidth-low", "warning")], form(names, rates)
        number = str(slow) if names[slow][-1].isdecimal() and ":" not in names[slow][2:] else names[slow]
        assert found[0].subject.endswith(number) or names is NAMES["cuda"]
        assert serious(form(names, [written(55.0 + place / 10, unit, glue) for place in range(4)])) == []


def test_the_unit_of_the_first_number_is_that_of_all() -> None:
    expected = {("host", "gpu0"): 55.2, ("host", "gpu1"): 55.1, ("host", "gpu2"): 27.4}
    for text in (
        "H2D: GPU0 55.2 GB/s, GPU1 55.1, GPU2 27.4",
        "H2D: GPU0 55.2, GPU1 55.1, GPU2 27.4 GB/s",
        "H2D (GB/s): GPU0 55.2, GPU1 55.1, GPU2 27.4",
    ):
        assert flows(text) == pytest.approx(expected)
    assert flows("GPU0 55.2 GB/s, GPU1 55.1 GB/s") == {}  # the direction is not known


@pytest.mark.parametrize("arrow", ["→", "->", " -> ", "-->"])
@pytest.mark.parametrize("title", ["p2p ", "peer copy: ", "nvlink "])
def test_several_flows_in_a_row(arrow: str, title: str) -> None:
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    healthy = title + " ".join(f"{a}{arrow}{b} 24{b}GB/s" for a, b in pairs)
    assert flows(healthy) == {(f"gpu{a}", f"gpu{b}"): 240.0 + b for a, b in pairs}
    assert serious(healthy) == []
    (found,) = serious(healthy.replace(f"1{arrow}2 242GB/s", f"1{arrow}2 48GB/s"))
    assert found.subject == "gpu1-gpu2"


PROGRAMS = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "iperf3", "qperf"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("arrow", ["->", " -> ", "→"])
@pytest.mark.parametrize("slow", range(1, 5))
def test_a_program_in_front_of_pairs_of_nodes(program: str, arrow: str, slow: int) -> None:
    def text(low: float) -> str:
        pairs = itertools.combinations(range(1, 5), 2)
        return "\n".join(
            f"{program} node{a}{arrow}node{b}: {low if slow in (a, b) else 392.1:.1f} Gbit/s" for a, b in pairs
        )

    assert [(one.code, one.subject) for one in serious(text(98.2))] == [("node-slow", f"node{slow}")]
    assert serious(text(391.0)) == []


WANTED = ["(expected {})", "(expected: {})", "(expected ~{})", "expected {}", "[target {}]", "(nominal {})"]


@pytest.mark.parametrize("form", WANTED)
@pytest.mark.parametrize("pair", ["gpu0-gpu2", "GPU0 -> GPU2", "gpu0→gpu2"])
@pytest.mark.parametrize("unit", ["", " GB/s", "GB/s"])
def test_the_expected_number_is_the_comparison(form: str, pair: str, unit: str) -> None:
    (found,) = serious(f"{pair}: 4.1 GB/s {form.format(f'22{unit}')}")
    assert (found.subject, found.expected) == ("gpu0-gpu2", 22e9)
    assert found.observed == pytest.approx(4.1e9)
    assert serious(f"{pair}: 19.9 GB/s {form.format(f'22{unit}')}") == []


CHANGES = [
    "{end}: {after} (before: {before})",
    "{end}: {after} (was {before})",
    "{end} {before}, after reboot: {after}",
    "{end}: {before} (now {after})",
    "Before: {end} {before}, after reboot: {end} {after}",
    "before the update: {end} {before}; after the update: {end} {after}",
    "After reboot: {end} {after}, before: {end} {before}",
    "{end}: {before} before, {after} after",
]


@pytest.mark.parametrize("form", CHANGES)
@pytest.mark.parametrize("end", ["gpu0 -> gpu1", "mlx5_0", "mlx5_3"])
def test_a_change_in_one_line(form: str, end: str) -> None:
    (found,) = serious(form.format(end=end, before="392 Gb/s", after="196 Gb/s"))
    assert (found.observed, found.expected, found.basis) == (24.5e9, 49e9, "baseline")
    assert serious(form.format(end=end, before="196 Gb/s", after="392 Gb/s")) == []


@pytest.mark.parametrize("arrow", ["->", "→", " to ", ": "])
def test_a_pair_with_one_slow_direction(arrow: str) -> None:
    rows = "GPU0{0}GPU1 {1} GB/s\nGPU1{0}GPU0 {2} GB/s"
    if arrow == ": ":
        rows = "copy " + rows.replace("\n", "\ncopy ").replace("{0}", " -> ")
    (found,) = serious(rows.format(arrow, 245, 12))
    assert (found.subject, found.expected, found.observed) == ("gpu1-gpu0", 245e9, 12e9)
    assert serious(rows.format(arrow, 245, 212)) == []


def test_both_ways_marks_of_pairs() -> None:
    rows = [f"gpu0<>gpu{b} {12.3 if b == 3 else 50.2} GB/s bidirectional" for b in range(1, 6)]
    (found,) = serious("\n".join(rows))
    assert (found.subject, found.observed) == ("gpu0-gpu3", 6.15e9)
    assert serious("\n".join(rows).replace("12.3", "49.8")) == []


PATHS = {"PIX": 26.1, "PXB": 25.8, "PHB": 23.4, "NODE": 21.0, "SYS": 19.2}
PATH_FORMS: dict[str, Callable[[str, float], str]] = {
    "colon": lambda path, rate: f"{path}: {rate} GB/s",
    "table": lambda path, rate: f"| {path} | {rate} GB/s |",
    "blank": lambda path, rate: f"{path} {rate} GB/s",
}


@pytest.mark.parametrize("form", PATH_FORMS.values(), ids=PATH_FORMS)
def test_types_of_paths(form: Callable[[str, float], str]) -> None:
    def text(**other: float) -> str:
        return "\n".join(form(path, rate) for path, rate in (PATHS | other).items())

    assert report_of(text()).findings == ()
    assert report_of(text()).verdict == "unknown"  # what each path can reach is not known
    assert {(one.subject, one.severity) for one in report_of(text(SYS=9.2)).findings} == {("SYS", "info")}
    assert [(one.subject, one.observed) for one in serious(text(PIX=9.0))] == [("PIX", 9e9)]
    rows = "\n".join(form("PIX", rate) for rate in (26.1, 26.0, 12.4, 26.2))
    assert [(one.subject, one.observed) for one in serious(rows)] == [("PIX", 12.4e9)]


def matrix(slow: float, unit: str, corner: str, title: str, empty: str) -> str:
    lines = [f"| {corner} | " + " | ".join(f"GPU{n}" for n in range(4)) + " |", "|---|---|---|---|---|"]
    for a in range(4):
        cells = [empty if a == b else f"{slow if {a, b} == {0, 3} else 240 + a + b}{unit}" for b in range(4)]
        lines.append(f"| GPU{a} | " + " | ".join(cells) + " |")
    return "\n".join([*([title] if title else []), *lines])


@pytest.mark.parametrize("empty", ["-", "X", "N/A", "0"])
@pytest.mark.parametrize(
    ("unit", "corner", "title"),
    [("", "", "Bandwidth (GB/s)"), ("", "GB/s", ""), (" GB/s", "", ""), ("", "", "P2P in GB/s:")],
)
def test_a_table_with_gpus_on_both_sides(unit: str, corner: str, title: str, empty: str) -> None:
    (found,) = serious(matrix(48, unit, corner, title, empty))
    assert found.subject == "gpu0-gpu3"
    assert serious(matrix(243, unit, corner, title, empty)) == []
    assert len(flows(matrix(243, unit, corner, title, empty))) == 12


def test_a_table_without_a_unit_is_a_gap() -> None:
    report = report_of(matrix(48, "", "", "", "-"))
    assert (report.verdict, report.findings, flows(matrix(48, "", "", "", "-"))) == ("unknown", (), {})


@pytest.mark.parametrize(
    "text",
    [
        "On GPU 3 I only get 12.5 GB/s host to device, all others give 25.",
        "GPU3 reaches 12.5 GB/s, the other GPUs 25 GB/s",
        "All other GPUs show 25 GB/s, but GPU 3 only 12.5 GB/s",
    ],
)
def test_a_sentence_about_one_gpu(text: str) -> None:
    (found,) = serious(text)
    assert (found.subject, found.observed, found.expected) == ("gpu3", 12.5e9, 25e9)


def test_a_consumer_machine_with_12_percent_between_pairs_is_healthy() -> None:
    rates = itertools.cycle((12.4, 11.2, 12.3, 11.9, 12.4, 11.0))
    text = "p2p " + " ".join(f"{a}->{b} {next(rates)}GB/s" for a, b in itertools.permutations(range(4), 2))
    assert serious(text) == []
