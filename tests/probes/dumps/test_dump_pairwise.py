"""Tables of nodes in pairs, and which node is the slow one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import NodePair
from linkgauge.models.facts.records import Evidence, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import pairwise
from linkgauge.probes.dumps.core.part import Part

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
TEXT = "n-1,n-2     88.10\nn-2, n-3   44.20   # far\nn-3 <-> n-4: 44.05 GB/s\nn-4,n-1  87.90 \n"


def said(text: str) -> list[Record]:
    return list(pairwise.read(Part("pairs", 1, text)))


def pair(number: int, a: str, b: str, rate: float) -> NodePair:
    evidence = Evidence(f"pairs:{number}", TEXT.splitlines()[number - 1].strip())
    return NodePair(key=f"{a}-{b}", a=a, b=b, rate=rate * 1e9, cites={"rate": evidence})


WHOLE = [
    pair(1, "n-1", "n-2", 88.10),
    pair(2, "n-2", "n-3", 44.20),
    pair(3, "n-3", "n-4", 44.05),
    pair(4, "n-4", "n-1", 87.90),
]


def test_a_whole_table_and_one_that_was_cut() -> None:
    assert recognise(TEXT)
    lines = TEXT.splitlines(keepends=True)
    for end in range(len(lines) + 1):
        assert said("".join(lines[:end])) == WHOLE[:end]


def test_the_best_of_several_runs() -> None:
    (one,) = said("a,b 10.5\na,b 40.25\na,b 9.1\na,a 99.9\n")
    assert isinstance(one, NodePair)
    assert (one.key, one.rate) == ("a-b", 40.25e9)


def report(*rows: tuple[str, str, float]) -> Report:
    facts = [NodePair(key=f"{a}-{b}", a=a, b=b, rate=rate * 1e9) for a, b, rate in rows]
    return evaluate(assemble(facts, Site(), 0.0, origin="dumps"))


@pytest.mark.parametrize(
    ("rows", "slow", "open_pairs"),
    [
        ([("a", "b", 88), ("b", "c", 44), ("c", "d", 44), ("d", "a", 88)], ["c"], []),
        ([("a", "b", 88), ("b", "c", 86), ("c", "d", 85), ("d", "a", 88)], [], []),
        ([("a", "b", 88), ("c", "d", 44)], [], ["c-d"]),  # one of the two, nobody knows which
        ([("a", "b", 88), ("b", "c", 44)], [], ["b-c"]),  # the way between them may be slow
        ([("a", "b", 44), ("b", "c", 44), ("c", "a", 44)], [], []),  # all alike: nobody is the odd one
        ([("a", "b", 88), ("b", "c", 44), ("c", "d", 44), ("d", "a", 88), ("e", "f", 45)], ["c"], ["e-f"]),
    ],
)
def test_who_is_the_slow_one(rows: list[tuple[str, str, float]], slow: list[str], open_pairs: list[str]) -> None:
    told = report(*rows)
    assert [(one.code, one.severity, one.subject) for one in told.findings] == [
        ("node-slow", "critical", n) for n in slow
    ]
    assert [one.subject for one in told.not_checked] == open_pairs


def test_the_message() -> None:
    (one,) = report(("a", "b", 88.1), ("b", "c", 44.2), ("c", "d", 44.05), ("d", "a", 87.9)).findings
    assert one.message == (
        "c is slow with each of its 2 partners (44.2 GB/s with b, 44.0 GB/s with d); with others these reach 88.0 GB/s"
    )


@given(st.permutations([("a", "b", 88.0), ("b", "c", 44.0), ("c", "d", 43.0), ("d", "a", 88.0), ("a", "e", 86.0)]))
def test_the_order_of_pairs_changes_nothing(rows: list[tuple[str, str, float]]) -> None:
    assert [one.subject for one in report(*rows).findings] == ["c"]


@pytest.mark.parametrize("text", ["", "a,b", "a,b,c 1.0", "read, write 1.0 ms", "1,2 3.0", "a,b 88", "a, b: 1.5%"])
def test_what_is_no_table(text: str) -> None:
    assert not re.search(pairwise.BEGIN, text, re.MULTILINE)


@given(
    st.lists(st.sampled_from([*TEXT.splitlines(True), "a,", "1.5", "\n"]) | st.text(max_size=9)).map("".join)
    | st.text()
)
def test_any_text(text: str) -> None:
    for one in said(text):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(pairwise.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
