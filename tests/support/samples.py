"""Sample outputs of tools by reader, for programs that change them (bench/fuzz/fuzz.py)."""

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
    """The texts by reader name, each once. Includes the recorded ones if they exist."""
    found: dict[str, list[str]] = {reader.name: [] for reader in READERS}
    for text in dict.fromkeys((*_of_tests(), *(recorded_texts() if recorded else ()))):
        for reader, part in split("", text, 0.0, READERS):
            if reader and part.text not in found[reader.name]:
                found[reader.name].append(part.text)
    return found


BY_NAME = {reader.name: reader for reader in READERS}


def read(reader: str, text: str, name: str = "log") -> list[Record]:
    """The records of one reader for a text, without splitting the text."""
    return list(BY_NAME[reader].read(Part(name, 1, text, 0.0)))


def _of_tests() -> Iterator[str]:
    for path in sample_files():
        yield from (output.text for output in outputs(path))


def recorded_texts() -> Iterator[str]:
    """The outputs in ../shared; none if the folder is absent."""
    for path in sorted(OUTPUTS.rglob("*")):
        if path.is_file() and path.name != "SOURCES.tsv" and path.stat().st_size < 1 << 20:
            yield path.read_text(encoding="utf-8", errors="replace")
