"""Sentences of people in the catalog: they count as statements of now, not as conditions, questions or old faults."""

from __future__ import annotations

import pytest

from linkgauge.models.catalog.log_messages import SAID, Message, entries, message
from linkgauge.probes.kernel_log.messages import find_messages, sentences
from tests.support.texts import report_of

SENTENCES = sentences()
ROWS = [message(entry.name) for entry in entries(*SAID)]
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
    return [one.name for one in find_messages(text, SENTENCES)]


@pytest.mark.parametrize("form", STATED)
def test_a_statement_counts(form: str) -> None:
    assert [row.name for row in ROWS if row.name not in said(STATED[form].format(row.example.rstrip(".")))] == []


@pytest.mark.parametrize("form", NOT_STATED)
def test_what_may_be_or_was_does_not_count(form: str) -> None:
    found = {row.name: said(NOT_STATED[form].format(row.example.rstrip("."))) for row in ROWS}
    assert {name: names for name, names in found.items() if name in names} == {}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_likely_and_names_no_log(row: Message) -> None:
    """A person may be wrong, so the finding is not certain."""
    found = next(one for one in report_of(row.example).findings if one.code == row.code)
    assert found.confidence == "likely"
    assert not found.message.startswith("the log")


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
    assert [one.subject for one in find_messages(text, SENTENCES)] == [subject]


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
