"""A bounded part of bench/accuracy/excerpts: frames and layouts that the readers see through, and how it judges."""

from __future__ import annotations

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
