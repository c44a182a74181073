"""The words that captures keep are those that the readers of machines and their rules need."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, Message, entries, message
from linkgauge.probes.kernel_log.messages import catalog, find_messages
from linkgauge.probes.parsing.harmless import is_form, reduced
from linkgauge.probes.parsing.known_words import KNOWN_WORDS, words_of

ROOT = Path(__file__).parents[3]
# Of these modules, all texts: they read the machine, give values and sentences to what they read, or write the files of
# a synthetic machine, which are named as those of a real one.
READERS = (
    *(f"probes/{name}" for name in ("calls", "capture", "gpu", "host", "kernel_log", "measure", "network", "parsing")),
    *(f"probes/{name}" for name in ("pcie", "storage", "synthetic", "sysfs", "system")),
    *(f"probes/{name}.py" for name in ("live_tools", "nccl_ras", "redfish", "serials")),
    *(f"models/{name}" for name in ("catalog", "facts", "inventory")),
)
NO_READERS = (  # sentences of people, which no machine has, and words that are known without the file
    "models/catalog/said_messages.py",
    "models/catalog/said_numbers.py",
    "probes/kernel_log/said.py",
    "probes/parsing/known_words.py",
    "probes/parsing/sentences.py",
)
# Of these, the patterns, which match texts of events, and the values, which are texts without blanks.
MATCHERS = tuple(f"models/{name}" for name in ("bandwidth", "diagnosis", "graph", "rules", "site"))
ESCAPE = re.compile(r"\\[A-Za-z]")  # "\bfailed" is the word "failed"
HEARD = catalog(*KERNEL)
IN_NUMBERS = {"sensors-alarm", "nvme-capacity-gone"}  # long numbers in the log, and temperatures, become stand-ins


def modules(*places: str) -> Iterator[Path]:
    for place in (ROOT / name for name in places):
        yield from [place] if place.is_file() else sorted(place.rglob("*.py"))


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of the texts that are expressions of their own."""
    return {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}


def texts(tree: ast.AST) -> Iterator[str]:
    left_out = docstrings(tree)
    for one in ast.walk(tree):
        if isinstance(one, ast.Constant) and id(one) not in left_out and isinstance(one.value, (str, bytes)):
            yield one.value if isinstance(one.value, str) else one.value.decode("latin-1")


def patterns_and_values(tree: ast.AST) -> Iterator[str]:
    yield from (text for text in texts(tree) if text.split() == [text])
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "re.compile":
            yield from texts(one)


def words_of_the_code() -> set[str]:
    left_out = {ROOT / name for name in NO_READERS}
    found = [text for path in modules(*READERS) if path not in left_out for text in texts(ast.parse(path.read_text()))]
    found += [text for path in modules(*MATCHERS) for text in patterns_and_values(ast.parse(path.read_text()))]
    words = {word for text in found for word in words_of(ESCAPE.sub(" ", text).encode())}
    return {word for word in words if not is_form(word)}


def test_the_file_has_the_words_of_the_code_and_no_others(golden: Callable[[Path, str], None]) -> None:
    """Read each new word before you commit it: it must not be of a customer, a person or one machine."""
    golden(Path(KNOWN_WORDS), "\n".join(sorted(words_of_the_code())) + "\n")


@pytest.mark.parametrize("name", [entry.name for entry in entries(*KERNEL) if entry.name not in IN_NUMBERS])
def test_a_message_is_found_in_its_reduced_example(name: str) -> None:
    row: Message = message(name)
    assert name in {one.name for one in find_messages(row.example, HEARD)}
    line = reduced(row.example, "log", lambda word: "some-word-1")
    assert name in {one.name for one in find_messages(line, HEARD)}
