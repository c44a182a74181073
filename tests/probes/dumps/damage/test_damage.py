"""Damaged outputs of healthy machines: a line that is missing, a changed character, the halves of two outputs.

Damage hides facts. It must not show a certain critical fault: only the words of a tool are certain.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from linkgauge.models.report import Finding
from tests.support.dump_samples import SAMPLES, outputs, sample_files
from tests.support.texts import report_of

FOLDERS = sorted({str(path.parent.relative_to(SAMPLES)) for path in sample_files()})
LINES, CHARACTERS, SPLICES = 5, 4, 25  # damages of each text, and splices for each seed
LONGEST = 30_000  # characters
FABRIC = "nvlink-fabric-incomplete"
WORD = re.compile(r"[A-Za-z]{3,}|[0-9]{2,}")


def findings(text: str) -> list[Finding]:
    return list(report_of(text).findings)


def certain(text: str) -> set[str]:
    return {one.code for one in findings(text) if (one.severity, one.confidence) == ("critical", "certain")}


@cache
def healthy(folder: str) -> tuple[str, ...]:
    """The texts of the folder without a fault at any severity but info."""
    texts = (one.text for path in sample_files() if path.parent == SAMPLES / folder for one in outputs(path))
    return tuple(
        text
        for text in dict.fromkeys(texts)
        if len(text) < LONGEST and {one.severity for one in findings(text)} <= {"info"}
    )


def without_a_line(text: str, some: random.Random) -> Iterator[str]:
    lines = text.split("\n")
    for place in some.sample(range(len(lines)), min(LINES, len(lines))):
        yield "\n".join(lines[:place] + lines[place + 1 :])


def with_another_character(text: str, some: random.Random) -> Iterator[str]:
    words = list(WORD.finditer(text))
    for word in some.sample(words, min(CHARACTERS, len(words))):
        place = some.randrange(word.start(), word.end())
        yield text[:place] + some.choice("0123456789abcxyzXZ#") + text[place + 1 :]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_damaged_output_shows_no_certain_fault(folder: str) -> None:
    some = random.Random(folder)
    for text in healthy(folder):
        known = {one.code for one in findings(text)}  # the log of an old fault has its words
        for damaged in (*without_a_line(text, some), *with_another_character(text, some)):
            assert certain(damaged) <= known, damaged


@pytest.mark.parametrize("seed", range(4))
def test_the_halves_of_two_outputs_show_no_certain_fault(seed: int) -> None:
    """Both texts together show what their facts mean together."""
    some = random.Random(seed)
    folders = [folder for folder in FOLDERS if healthy(folder)]
    for _ in range(SPLICES):
        folder = some.choice(folders)
        one = some.choice(healthy(folder))
        other = some.choice(healthy(some.choice([folder, some.choice(folders)])))
        head, tail = one.split("\n"), other.split("\n")
        spliced = "\n".join(head[: some.randrange(len(head) + 1)] + tail[some.randrange(len(tail) + 1) :])
        if found := certain(spliced):
            assert found <= {finding.code for text in (one, other, f"{one}\n{other}") for finding in findings(text)}, (
                spliced
            )


def test_a_healthy_list_without_each_of_its_lines() -> None:
    """`nvidia-smi nvlink -s`: a missing or damaged line is a gap, also if the list of another GPU follows."""
    lines = ["GPU 0: NVIDIA H200", *(f"\t Link {link}: 26.562 GB/s" for link in range(18)), ""]
    both = [*lines[:-1], *(line.replace("GPU 0", "GPU 1") for line in lines)]
    for whole in (lines, both):
        assert findings("\n".join(whole)) == []
        for place in range(1, len(whole) - 1):
            assert certain("\n".join(whole[:place] + whole[place + 1 :])) == set()
            assert certain("\n".join((*whole[:place], whole[place].replace("6", "o"), *whole[place + 1 :]))) == set()


def test_a_link_that_the_tool_calls_inactive_is_certain() -> None:
    """Also in a list with a missing line."""
    lines = ["GPU 0: NVIDIA H200", *(f"\t Link {link}: 26.562 GB/s" for link in range(18)), "GPU 1: NVIDIA H200"]
    lines[7] = "\t Link 6: <inactive>"
    for text in ("\n".join(lines), "\n".join(lines[:3] + lines[4:])):
        assert certain(text) == {"nvlink-inactive"}


@pytest.mark.parametrize(
    ("status", "found"), [("S9ccess", set()), ("Insufficient Resources", {FABRIC}), ("Success", set())]
)
def test_only_a_status_of_nvml_is_a_fault(status: str, found: set[str]) -> None:
    section = f"    Fabric\n        State           : Completed\n        Status          : {status}\n"
    assert certain(section) == found
