"""Results of SuperBench's gpu-copy-bw, whole, in another order, cut, and of rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import gpu_copy
from linkgauge.probes.dumps.core.part import Part

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
ROWS = [
    ("cpu_to_gpu0_by_dma_under_numa0 26.2387", Flow("copy", ("numa0", "gpu0")), 26.2387e9),
    ("gpu0_to_cpu_by_sm_under_numa1 5.67", Flow("copy-sm", ("gpu0", "numa1")), 5.67e9),
    ("gpu0_to_gpu1_write_by_dma 279.5", Flow("copy", ("gpu0", "gpu1")), 279.5e9),
    ("gpu1_to_gpu0_read_by_sm 261.5", Flow("copy-sm", ("gpu1", "gpu0")), 261.5e9),
    ("cpu_and_gpu1_by_dma 49.5", Flow("copy", ("host", "gpu1"), beside=(("gpu1", "host"),)), 24.75e9),
    ("gpu0_and_gpu1_write_by_dma 531.0", Flow("copy", ("gpu0", "gpu1"), beside=(("gpu1", "gpu0"),)), 265.5e9),
]
SKIPPED = ["gpu0_to_gpu0_by_sm 682.667", "gpu_all_to_gpu0_write_by_sm 56.2", "gpu0_to_gpu1_write_by_dma 0.0"]
SAMPLES = ("\n".join([*(row[0] for row in ROWS), *SKIPPED]),)


def said(text: str) -> list[Record]:
    return list(gpu_copy.read(Part("log", 1, text, AT)))


def whole(rows: list[tuple[str, Flow, float]]) -> list[Record]:
    return [
        Observation(
            about=flow,
            quantity="rate",
            unit="bytes_per_second",
            value=value,
            at=AT,
            busy=True,
            evidence=Evidence(f"log:{number}", text),
        )
        for number, (text, flow, value) in enumerate(rows, 1)
    ]


GPUS = [Gpu(key="gpu0"), Gpu(key="gpu1")]


@given(st.permutations(ROWS))
def test_rows_in_any_order(rows: list[tuple[str, Flow, float]]) -> None:
    text = "\n".join([*(row[0] for row in rows), *SKIPPED])
    assert recognise(text)
    assert all(re.search(gpu_copy.BEGIN, row[0]) for row in rows)
    told = said(text)
    assert [one for one in told if isinstance(one, Observation)] == whole(rows)
    assert {one.key for one in told if isinstance(one, Gpu)} == {one.key for one in GPUS}


def test_cut_at_any_line() -> None:
    for end in range(len(ROWS) + 1):
        told = said("\n".join(row[0] for row in ROWS[:end]))
        assert [one for one in told if isinstance(one, Observation)] == whole(ROWS[:end])


@pytest.mark.parametrize("text", ["", "cpu_to_gpu0", "cpu to gpu0 by dma 1.0", "# gpu0_to_cpu_by_sm 1.0"])
def test_what_is_no_output(text: str) -> None:
    assert not re.search(gpu_copy.BEGIN, text, re.MULTILINE)


fragments = st.sampled_from([*(row[0] for row in ROWS), "\n", " 1.5"]) | st.text(max_size=9)


@given(st.lists(fragments).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_recorded_outputs() -> None:
    told = said((SHARED / "superbench-tests/gpu_copy_bw_performance.log").read_text())
    assert len([one for one in told if isinstance(one, Observation)]) == 44
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20 and not path.name.startswith("gpu_copy"):
            assert not re.search(gpu_copy.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
