"""The samples of the readers: the result of each reader equals the expected file beside the sample.

LINKGAUGE_GOLDEN=write .venv/bin/pytest -q tests/probes/dumps -k samples writes the expected files. Read `git diff`
before you commit it: users see each change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Fact, Observation
from linkgauge.probes.dumps.read import read_text, recognise
from tests.support.dump_samples import (
    AT,
    EXPECTED,
    SAMPLES,
    as_json,
    expected_file,
    outputs,
    result,
    sample_files,
    text_of,
)
from tests.support.samples import samples

FILES = sample_files()


def name_of(path: Path) -> str:
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("sample", FILES, ids=name_of)
def test_what_the_readers_give(sample: Path, golden: Callable[[Path, str], None]) -> None:
    """The files are equal character by character, so writing them again changes nothing."""
    golden(expected_file(sample), f"{as_json(result(sample))}\n")


@pytest.mark.parametrize("sample", FILES, ids=name_of)
def test_each_record_can_be_kept_and_cites_a_line_that_is_there(sample: Path) -> None:
    for output in outputs(sample):
        assert recognise(output.text)
        for one in read_text(output.name, output.text, AT):
            assert decode(encode(one)) == one
            cites = one.cites.values() if isinstance(one, Fact) else ()
            for cite in (*cites, *((one.evidence,) if isinstance(one, Observation) else ())):
                file, _, number = cite.source.rpartition(":")
                assert file == output.name
                assert 1 <= int(number) <= output.text.count("\n") + 1


def test_each_expected_file_has_one_sample() -> None:
    assert sorted(map(expected_file, FILES)) == sorted(SAMPLES.rglob(f"*{EXPECTED}"))


def test_expected_files_are_json() -> None:
    for path in SAMPLES.rglob(f"*{EXPECTED}"):
        assert as_json(json.loads(text_of(path))) == text_of(path).rstrip("\n")


def test_each_reader_has_a_sample() -> None:
    assert [reader for reader, texts in samples(recorded=False).items() if not texts] == []
