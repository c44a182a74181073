"""The outputs of tools that the tests of readers hold, for programs that change them (bench/fuzz/fuzz.py).

A sample is any text at the top level of a test_dump_*.py, alone or in a list, a tuple or a dictionary, in which a
reader recognises an output. Where texts are made by functions, SAMPLES has some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

HERE = Path(__file__).parents[1]
OUTPUTS = HERE.parents[1] / "shared/data/outputs"


def samples(recorded: bool = True) -> dict[str, list[str]]:
    """By the name of each family the texts that it reads, each once; with those that were recorded, where they are."""
    found: dict[str, list[str]] = {family.name: [] for family in READERS}
    for text in dict.fromkeys((*_of_tests(), *(_of_files() if recorded else ()))):
        for family, part in split("", text, 0.0, READERS):
            if family and part.text not in found[family.name]:
                found[family.name].append(part.text)
    return found


def _of_tests() -> Iterator[str]:
    folder = HERE / "probes/dumps"
    for name in (*sorted(path.stem for path in folder.glob("test_dump_*.py")), "test_nccl", "test_nccl_xml"):
        for value in vars(import_module(f"tests.probes.dumps.{name}")).values():
            yield from _texts(value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)


def _of_files() -> Iterator[str]:
    for path in sorted(OUTPUTS.rglob("*")):
        if path.is_file() and path.name != "SOURCES.tsv" and path.stat().st_size < 1 << 20:
            yield path.read_text(encoding="utf-8", errors="replace")
