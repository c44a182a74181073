"""The sample outputs of tools, by the reader that reads them, for programs that change them (bench/fuzz/fuzz.py)."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.models.facts.records import Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS
from tests.support.dump_samples import outputs, sample_files
from tests.support.paths import SHARED

OUTPUTS = SHARED / "data/outputs"


def samples(recorded: bool = True) -> dict[str, list[str]]:
    """By the name of each reader the texts that it reads, each once; with those that were recorded, where they are."""
    found: dict[str, list[str]] = {family.name: [] for family in READERS}
    for text in dict.fromkeys((*_of_tests(), *(recorded_texts() if recorded else ()))):
        for family, part in split("", text, 0.0, READERS):
            if family and part.text not in found[family.name]:
                found[family.name].append(part.text)
    return found


BY_NAME = {family.name: family for family in READERS}


def read(reader: str, text: str, name: str = "log") -> list[Record]:
    """What one reader gives for a text, wherever its outputs begin."""
    return list(BY_NAME[reader].read(Part(name, 1, text, 0.0)))


def _of_tests() -> Iterator[str]:
    for path in sample_files():
        yield from (output.text for output in outputs(path))


def recorded_texts() -> Iterator[str]:
    """The outputs of ../shared, where they are."""
    for path in sorted(OUTPUTS.rglob("*")):
        if path.is_file() and path.name != "SOURCES.tsv" and path.stat().st_size < 1 << 20:
            yield path.read_text(encoding="utf-8", errors="replace")
