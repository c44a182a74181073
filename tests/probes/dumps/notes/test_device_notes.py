"""What people write about devices: variations made by program, and words that change nothing or everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Port
from linkgauge.probes.dumps.read import read_text
from tests.support.texts import AT, report_of

LANES = ("x{n}", "{n}x", "{n} lanes", "width {n}", "link width: x{n}", "PCIe Gen4 x{n}", "16 GT/s, x{n}")
NAMES = (
    "GPU {n}",
    "GPU{n}:",
    "gpu{n} =",
    "gpu #{n} -",
    "- GPU{n}:",
    "| GPU{n} |",
    "node7: gpu{n}",
    "Node trn-3: GPU {n}",
)
OTHERS = (
    "instead of x16",
    "(should be x16)",
    "while the others are at x16",
    "vs x16 expected",
    ", the other seven at x16",
)


def found(text: str) -> list[tuple[str, str, str]]:
    """Severity, code and subject of each finding."""
    return [(one.severity, one.code, one.subject) for one in report_of(text).findings]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lanes", LANES)
def test_one_of_equal_gpus(name: str, lanes: str) -> None:
    widths = (16, 16, 8, 16)
    text = "\n".join(f"{name.format(n=n)} {lanes.format(n=width)}" for n, width in enumerate(widths))
    assert found(text) == [("warning", "pcie-link-narrow", "gpu2")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", OTHERS)
def test_what_a_sentence_expects(name: str, other: str) -> None:
    assert found(f"{name.format(n=5)} is running at x4 {other}") == [("critical", "pcie-link-narrow", "gpu5")]


@given(st.lists(st.sampled_from((1, 2, 4, 8, 16)), min_size=1, max_size=8), st.sampled_from(LANES))
def test_facts_are_what_the_lines_say(widths: list[int], lanes: str) -> None:
    text = "\n".join(f"GPU{number}: {lanes.format(n=width)}" for number, width in enumerate(widths))
    facts = [one for one in read_text("note.txt", text, AT) if isinstance(one, Gpu)]
    assert [(one.key, one.pcie_width) for one in facts] == [(f"gpu{n}", width) for n, width in enumerate(widths)]


@given(st.integers(1, 16), st.sampled_from(LANES))
def test_equal_devices_give_no_finding(count: int, lanes: str) -> None:
    assert not found("\n".join(f"GPU{number}: {lanes.format(n=8)}" for number in range(count)))


@pytest.mark.parametrize(
    "sentence",
    [
        "GPU 5 is not at x4",
        "we moved GPU 5 from an x4 slot",
        "GPU 5: x4 according to the manual",
        "GPU 5 had x4 last week",
    ],
)
def test_other_words_give_no_fact(sentence: str) -> None:
    facts = [one for one in read_text("note.txt", sentence, AT) if isinstance(one, Gpu)]
    assert not [one for one in facts if one.pcie_width]
    assert report_of(sentence).verdict == "unknown"


@pytest.mark.parametrize(
    ("words", "state"),
    [("Active LinkUp", "ACTIVE"), ("state DOWN, phys_state Disabled", "DOWN"), ("is up", "ACTIVE"), ("Init", "INIT")],
)
def test_states_of_ports(words: str, state: str) -> None:
    (port,) = (one for one in read_text("note.txt", f"mlx5_3 {words}", AT) if isinstance(one, Port))
    assert (port.key, port.state) == ("mlx5_3/1", state)


def test_a_variable_in_a_log_that_shows_no_device() -> None:
    """Without the devices it is information, and no verdict."""
    log = "NCCL INFO NCCL_IB_DISABLE set by environment to 1.\nNCCL INFO Using network Socket\n"
    report = report_of(log)
    assert [(one.severity, one.code) for one in report.findings if one.code == "nccl-env"] == [("info", "nccl-env")]
    assert report.verdict == "unknown"


@pytest.mark.parametrize("text", ["gpu 3: width 4", "gpu 2: width 16\ngpu 3: width 4"])
def test_a_width_without_a_maximum_is_a_gap(text: str) -> None:
    report = report_of(text)
    assert (report.verdict, [(one.what, one.subject) for one in report.not_checked]) == (
        "unknown",
        [("Gpu.pcie_width", "gpu3")],
    )


def test_a_line_between_rows_keeps_the_columns() -> None:
    table = "gpu, remapped rows pending, remapped rows failed\n0, no, no\nstep 100: loss 2.3\n3, yes, no\n"
    assert found(table) == found(table.replace("step 100: loss 2.3\n", "")) != []


@pytest.mark.parametrize("text", ["GPU2: x8 (max x16)GPU3: x16", "GPU 2 is at x8, GPU 3 is at x16"])
def test_two_statements_in_a_line_give_no_fact(text: str) -> None:
    assert not [one for one in read_text("note.txt", text, AT) if isinstance(one, Gpu)]


def test_text_without_a_known_line_is_no_list_of_devices() -> None:
    report = report_of("mlx5_0 link speed of old firmware was said to be odd")
    assert [one.detail for one in report.not_checked] == ["not in a known format"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpu-2-12 has lost a GPU", [("critical", "gpu-missing", "node")]),
        ("gpu-12 has lost a GPU", [("critical", "gpu-missing", "node")]),
        ("gpu12 lost a gpu", []),
        ("gpu-2-12: GPU3 lost", [("critical", "gpu-missing", "gpu3")]),
        ("gpu-2-12 GPU3 lost", [("critical", "gpu-missing", "gpu3")]),
        ("node12 never lost a GPU", []),
        ("What happens if node12 lost a GPU?", []),
    ],
)
def test_names_of_machines_that_look_like_gpus(line: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(f"{line}\n") == expected
