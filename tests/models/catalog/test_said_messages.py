"""Sentences of people in the catalog: they count as statements of now, not as conditions, questions or old faults."""

from __future__ import annotations

import re
import time
from re import _parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.catalog import codes
from linkgauge.models.catalog.log_messages import KERNEL, PROGRAMS, SAID, Said, entries, message
from linkgauge.models.catalog.said_messages import expanded, meaning, row
from linkgauge.models.catalog.said_numbers import numbers
from linkgauge.probes.kernel_log.messages import catalog, find_messages
from linkgauge.probes.kernel_log.said import find_said
from tests.support.expressions import variants
from tests.support.texts import report_of

ROWS = [row(name) for name in dict.fromkeys(entry.name for entry in entries(*SAID))]
EXAMPLES = [(one, example) for one in ROWS for example in one.examples]
STATED = {
    "alone": "{}",
    "with an end": "{}.",
    "after a sentence": "The job is slow. {}",
    "before a sentence": "{}. What should I do next?",
    "with a reason": "We drained the node because {}",
    "a list": "- {}",
    "bold": "**{}**",
    "asked for the reason": "Why is that: {}?",
    "a cell": "| n7 | {} |",
    "with a request": "{}, could somebody help?",
}
NOT_STATED = {
    "condition": "If {}, drain the node",
    "German condition": "Wenn {}, den Knoten leeren",
    "question": "Is it possible that {}?",
    "question of a manual": "What does it mean that {}?",
    "possibility": "This could mean that {}",
    "advice": "Make sure that you see it in the log in case {}",
    "over": "{} (fixed by a new riser)",
    "replaced": "{}, we replaced the board",
}


def said(text: str) -> list[str]:
    return [one.name for one in find_said(text)]


def test_each_row_is_complete() -> None:
    for one in ROWS:
        assert one.code in codes(), one.name
        assert one.severity, one.name
        assert one.action, one.name
        assert one.action.endswith("."), one.name
        assert len(one.examples) > 1, one.name
        assert (one.numbers is None) == (one.says is None), one.name
        assert (one.numbers == "count") == (one.counted is not None), one.name
        assert not one.meaning.endswith("."), one.name


def _plain(form: str) -> str:
    return re.sub(r"[1-9\0]", "0", form.lower())


def _lacks_needles(pattern: str, needles: tuple[str, ...]) -> list[str]:
    forms = variants(_parser.parse(expanded(pattern), re.MULTILINE))
    return [form for form in forms if not any(_plain(needle) in _plain(form) for needle in needles)]


def test_each_sentence_of_a_row_contains_a_needle() -> None:
    """In its topic, or in the words that must be beside it."""
    lacking = {one.name: _lacks_needles(one.topic, one.needles) for one in ROWS}
    lacking |= {one.name: _lacks_needles(one.beside, one.needles) for one in ROWS if lacking[one.name] and one.beside}
    assert {name: forms for name, forms in lacking.items() if forms} == {}


def test_repetitions_are_bounded() -> None:
    for one in ROWS:
        for pattern in (one.topic, *one.faults, one.counted or "", one.beside or "", one.without or ""):
            text = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", expanded(pattern))
            assert "*" not in text, one.name
            assert not re.search(r"x\+|\)\+|\.\+", text), one.name


def test_an_example_belongs_to_its_row() -> None:
    """A sentence counts only where no message of a program is. Several rows may fit a sentence, with one code."""
    wrong = {}
    for one, example in EXAMPLES:
        names = said(example)
        if one.name not in names or {message(name).code for name in names} != {one.code}:
            wrong[example] = (one.name, names)
        if find_messages(example, catalog(*KERNEL, *PROGRAMS)):
            wrong[example] = (one.name, ["a program"])
    assert wrong == {}


@pytest.mark.parametrize("form", STATED)
def test_a_statement_counts(form: str) -> None:
    texts = [(one, STATED[form].format(example.rstrip("."))) for one, example in EXAMPLES]
    assert [text for one, text in texts if one.name not in said(text)] == []


@pytest.mark.parametrize("form", NOT_STATED)
def test_what_may_be_or_was_does_not_count(form: str) -> None:
    texts = [NOT_STATED[form].format(example.rstrip(".")) for _, example in EXAMPLES]
    assert {text: names for text in texts if (names := said(text))} == {}


@pytest.mark.parametrize("one", ROWS, ids=lambda one: one.name)
def test_it_is_likely_and_names_no_log(one: Said) -> None:
    """A person may be wrong, so the finding is not certain."""
    for example in one.examples:
        report = report_of(example)
        found = next((finding for finding in report.findings if finding.code == one.code), None)
        assert found, example
        assert found.confidence == "likely", example
        assert not found.message.startswith("the log")
        assert "{" not in found.message
        assert report.verdict != "ok"


@pytest.mark.parametrize(
    ("text", "kind", "counted", "expected"),
    [
        ("the card runs at x8 instead of x16", "lanes", "", ("x8", "x16")),
        ("the card runs at x16 instead of x8", "lanes", "", None),
        ("it should have 16 lanes but it has 4 lanes", "lanes", "", ("4 lanes", "16 lanes")),
        ("Gen3 although both ends can do Gen5", "generation", "", ("Gen3", "Gen5")),
        ("8 GT/s, max_link_speed is 32 GT/s", "generation", "", ("8 GT/s", "32 GT/s")),
        ("HDR while the switch is NDR", "gigabits", "", ("HDR", "NDR")),
        ("Speed: 25000Mb/s on a 100G adapter", "gigabits", "", ("25000Mb/s", "100G")),
        ("19 GB/s against 55 for the others", "gigabytes", "", ("19 GB/s", "55")),
        ("fell from 380 GB/s to 70 GB/s", "gigabytes", "", ("70 GB/s", "380 GB/s")),
        ("rose from 70 GB/s to 380 GB/s", "gigabytes", "", None),
        ("seven of eight GPUs", "count", "gpus", ("seven", "eight")),
        ("8 of 8 GPUs", "count", "gpus", None),
        ("2 of 8 GPUs are down", "count", "gpus", None),
        ("15 adapters, the machine ships with sixteen", "count", "adapters", ("15 adapters", "sixteen")),
        ("driver 550.54 and library 550.54.15", "version", "", None),
        ("driver 550.54 but library 535.1", "version", "", ("550.54", "535.1")),
        ("1.9 s per step, the others 1.2 s", "seconds", "", ("1.9 s", "1.2 s")),
        ("a Gen4 x8 link carries as much as a Gen3 x16 one", "lanes", "", None),
    ],
)
def test_two_numbers_of_a_sentence(text: str, kind: str, counted: str, expected: tuple[str, str] | None) -> None:
    found = numbers(text, kind, counted)
    assert (found and (found.have, found.want)) == expected


def test_the_meaning_has_both_numbers() -> None:
    assert meaning("said-narrow", "GPU 3 runs at x8 instead of x16") == "the PCIe link has x8 instead of x16"
    assert meaning("said-narrow", "GPU 3 only gets x8") == row("said-narrow").meaning


@given(st.data())
def test_no_text_takes_long(data: st.DataObject) -> None:
    """Parts of examples, repeated and mixed: the time stays proportional to the length."""
    some = data.draw(st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=4))
    parts = [example[: data.draw(st.integers(4, len(example)))] for _, example in some]
    glue = data.draw(st.sampled_from(["", " ", ": ", "0", "a", "x" * 50, "\n"]))
    text = glue.join(parts * data.draw(st.integers(1, 40)))
    begun = time.thread_time()  # of this thread alone: the machine may be busy
    find_said(text)
    assert time.thread_time() - begun < 1.0


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("GPU 3 has 12 uncorrectable ECC errors", "gpu3"),
        ("GPU at 0000:0f:00.0 has 12 uncorrectable ECC errors", "0000:0f:00.0"),
        ("GPU 3 and GPU 4 have 12 uncorrectable ECC errors", "node"),
        ("the link on mlx5_3 flaps every few minutes", "mlx5_3"),
        ("GPU 1 is fine. GPU 2 has 12 uncorrectable ECC errors", "gpu2"),
        ("GPU 1: HW Thermal Slowdown is active, GPU 2: SW Thermal Slowdown is not", "gpu1"),
    ],
)
def test_the_only_device_of_the_sentence_is_the_subject(text: str, subject: str) -> None:
    assert {one.subject for one in find_said(text)} == {subject}


@pytest.mark.parametrize(
    "text",
    [
        "8 of 8 GPUs are visible",
        "18 of 18 NVLinks are active",
        "lspci lists 8 GPUs and nvidia-smi shows 8",
        "GPU 3 has 0 uncorrectable ECC errors",
        "GPU 3 has no uncorrectable ECC errors",
        "the power limit is 700 W instead of 300 W",
        "MTU is 9000 on node A and 9000 on node B",
        "NIC mlx5_0 is on NUMA node 1 and GPU 0 is on NUMA node 1",
        "no thermal throttling on GPU 3",
        "Thermal throttling threshold: GPU 90 C",
        "Job for nvidia-fabricmanager.service failed because the control process exited with error code.",
    ],
)
def test_healthy_sentences_have_no_fault(text: str) -> None:
    assert said(text) == []
