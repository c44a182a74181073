"""A bounded part of bench/accuracy/excerpts: frames and layouts that the readers see through, and how it judges."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from msgspec.structs import replace

from bench.accuracy.excerpts.__main__ import (
    TRANSFORMATIONS,
    counts,
    failures,
    known,
    open_rows,
    rows,
    samples,
)
from bench.accuracy.excerpts.compare import compare
from bench.accuracy.excerpts.excerpt import Excerpt, Sample
from bench.accuracy.excerpts.reading import needs, read
from tests.support.paths import SHARED
from tests.support.texts import report_of

SEEN_THROUGH = [
    "fence and prose",
    "wiki",
    "CRLF",
    "colors",
    "no-break spaces",
    "UTF-16",
    "time, ISO",
    "two equal files",
]
TEXT = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n" + "".join(f"\t Link {n}: 25 GB/s\n" for n in range(12))
SAMPLE = Sample("smi_nvlink", "links", TEXT)


@pytest.mark.parametrize("name", SEEN_THROUGH)
def test_facts_are_kept(name: str) -> None:
    whole = [sample for sample in samples("[nsl]*") if "excerpts" not in sample.name]  # these have a frame already
    found = counts(rows(whole, name))
    assert found["facts kept"] >= 0.99 * found["facts"] > 0
    assert (found["new"], found["blind"]) == (0, 0)


def test_enough_transformations() -> None:
    assert len({one.name for one in TRANSFORMATIONS}) == len(TRANSFORMATIONS) >= 25


def test_it_sees_lost_facts_wrong_facts_and_new_findings() -> None:
    same = compare(SAMPLE, Excerpt((TEXT,)), "whole")
    assert same.kept == same.present == read((TEXT,)).atoms
    assert (same.wrong, same.new, same.silent, same.blind) == (frozenset(), (), False, False)
    nothing = compare(SAMPLE, Excerpt(("Good morning\n",)), "whole")
    assert not nothing.kept
    assert not nothing.silent  # the report names the lines in no known format
    broken = compare(SAMPLE, Excerpt((TEXT.replace("Link 3: 25 GB/s", "Link 3: <inactive>"),)), "whole")
    assert {(one.key, one.value) for one in broken.wrong} >= {("gpu0/nvlink3", "False")}
    assert [one.code for one in broken.new] == ["nvlink-inactive"]
    assert list(failures([replace(row, result=broken) for row in rows([SAMPLE], "CRLF")])) != []


def test_a_part_needs_only_what_it_shows() -> None:
    lines = TEXT.splitlines(keepends=True)
    half = compare(SAMPLE, Excerpt(("".join(lines[:4]),), frozenset(range(4))), "part")
    assert {atom.key for atom in half.present if atom.field == "active"} <= {f"gpu0/nvlink{n}" for n in range(3)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("nccl", "a letter changed"),
        ("rocm_copy", "a line cut"),
        ("amd_smi", "lines joined"),
        ("dcgm", "a line repeated"),
        ("smi_nvlink", "two machines spliced"),
        ("kernel_text", "the end cut"),
    ],
)
def test_damage_gives_no_other_fact_and_no_new_finding(reader: str, name: str) -> None:
    found = counts(open_rows(rows(samples(reader), name)))
    assert (found["samples"] > 0, found["wrong"], found["new"], found["certain"]) == (True, 0, 0, 0)


def test_a_fact_needs_the_line_of_its_device() -> None:
    link = next(atom for atom in read((TEXT,)).atoms if atom.key == "gpu0/nvlink3" and atom.field == "active")
    assert needs(TEXT).atoms[link] == {0, 4}


def test_each_exception_has_a_reason() -> None:
    keys = {"reader", "sample", "changes", "text", "explicit", "reason"}
    assert all(one["reason"] and set(one) <= keys for one in known())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("smi_table", "wrapped between words"),
        ("kernel_text", "wrapped at 60"),
        ("rates", "other lines in between"),
        ("kubernetes_node", "two machines spliced"),
        ("fabric_log", "two machines spliced"),
    ],
)
def test_no_excerpt_that_shows_a_fault_is_ok(reader: str, name: str) -> None:
    found = counts(rows(samples(reader), name))
    assert (found["samples"] > 0, found["blind"]) == (True, 0)


# The lines of a node whose memory is there: the node without memory is in other lines.
_LEGITIMATE = {("epyc-8-nodes-two-with-memory-quoted", "numa-memory-missing", 1)}


def test_the_cited_lines_alone_are_never_ok() -> None:
    """Each line of real texts that a warning cites, alone and with its neighbours: the same finding, or unknown."""
    cases = SHARED / "cases"
    if not cases.is_dir():
        pytest.skip(f"no {cases}")
    seen, blind = Counter[str](), set[tuple[str, str, int]]()
    for path in sorted(cases.glob("*/dumps/*.txt")):
        text = path.read_text(errors="replace")
        lines = text.split("\n")
        for one in report_of(text).findings:
            cited = [int(found[1]) - 1 for it in one.evidence if (found := re.fullmatch(r"text:(\d+)", it.source))]
            for more in (0, 1, 3) if one.severity != "info" and cited else ():
                kept = sorted({at for line in cited for at in range(max(0, line - more), line + more + 1)})
                report = report_of("\n".join(lines[at] for at in kept if at < len(lines)) + "\n")
                same = any(other.code == one.code for other in report.findings)
                seen["same" if same else report.verdict] += 1
                if report.verdict == "ok":
                    blind.add((path.parents[1].name, one.code, more))
    assert blind == _LEGITIMATE
    assert seen["same"] > 0.85 * seen.total() > 80
