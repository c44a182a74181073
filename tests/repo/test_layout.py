"""The source tree: sizes of files and functions, packages, imports of tests, forbidden names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("agent", "exporters", "models", "probes")
SOURCES = sorted(path for folder in (*CODE, "bench", "tests") for path in (ROOT / folder).rglob("*.py"))


@cache
def lengths_and_imports(path: Path) -> tuple[list[tuple[str, int]], list[str]]:
    """The lines of each function, and the parts of the names of all imported modules and objects."""
    lengths: list[tuple[str, int]] = []
    imports: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            lengths.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
        elif isinstance(node, ast.Import):
            imports += [part for one in node.names for part in one.name.split(".")]
        elif isinstance(node, ast.ImportFrom):
            imports += [*(node.module or "").split("."), *(one.name for one in node.names)]
    return lengths, imports


def imported_tests(path: Path) -> list[str]:
    return [name for name in lengths_and_imports(path)[1] if name.startswith("test_")]


def test_sizes() -> None:
    """Each file and each function, not their average."""
    files, long = [], []
    for path in SOURCES:
        if len(path.read_text().splitlines()) > (500 if path.is_relative_to(ROOT / "tests") else 300):
            files.append(str(path))
        long += [f"{path}: {name}: {length}" for name, length in lengths_and_imports(path)[0] if length > 40]
    assert (files, long) == ([], [])


def test_packages_are_small() -> None:
    """At most 20 modules in a package. The catalog and tests/nodes may have more: they grow with data and nodes."""
    modules = Counter(path.parent.relative_to(ROOT).as_posix() for path in SOURCES if path.name != "__init__.py")
    exempt = {"models/catalog", "tests/nodes"}
    assert {folder: count for folder, count in modules.items() if count > 20 and folder not in exempt} == {}


def test_each_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in SOURCES if path.relative_to(ROOT).parts[0] in CODE}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_each_folder_of_code_is_linked_into_the_package() -> None:
    links = {path.name: path.resolve() for path in (ROOT / "src/linkgauge").iterdir() if path.is_symlink()}
    assert links == {name: ROOT / name for name in CODE}


def test_one_importer_for_each_library() -> None:
    """So that a change of a library changes one file."""
    importers: dict[str, set[str]] = {}
    for path in (p for p in SOURCES if p.is_relative_to(ROOT) and p.relative_to(ROOT).parts[0] in CODE):
        libraries = (
            r"^\s*(?:import|from) (psutil|click|rich|pynvml|cuda|nccl|tornado|prometheus_client|yaml|bcrypt"
            r"|opentelemetry|pandas)\b"
        )
        for name in re.findall(libraries, path.read_text(), re.MULTILINE):
            importers.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert [path for path in importers.pop("click") if not path.startswith("agent/cli/")] == []
    assert all(len(files) == 1 for files in importers.values()), importers


def test_no_test_module_imports_another() -> None:
    """Modules without tests (tests/support) hold what several test modules use."""
    assert {path.name: found for path in SOURCES if (found := imported_tests(path))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import test_gate",
        "import tests.agent.slurm.test_gate",
        "from tests.agent.slurm.test_gate import check",
        "from tests.agent.slurm import test_gate",
        "from . import test_gate",
        "from .test_gate import check",
    ],
)
def test_each_form_of_an_import_is_seen(line: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"import pytest\n\ndef late() -> None:\n    {line}\n")
    assert imported_tests(path) == ["test_gate"]


def test_names_of_tests_are_plain() -> None:
    """Without the vague actors and verbs of older names. The tests of probes and of the catalog still have them."""
    older = (ROOT / "tests/probes", ROOT / "tests/models/catalog")
    paths = [path for path in SOURCES if path.name.startswith("test_") and not any(map(path.is_relative_to, older))]
    names = {name for path in paths for name, _ in lengths_and_imports(path)[0] if name.startswith("test_")}
    assert [name for name in names if {"said", "told", "nobody", "whoever"} & {*name.split("_")}] == []


def test_no_helpers_without_a_noun() -> None:
    assert [path for path in SOURCES if re.search(r"util|helper|(?<!fabric_)manager|common|misc", path.stem)] == []
