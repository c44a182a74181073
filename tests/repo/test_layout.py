"""The shape of the source tree: sizes, packages, words that do not belong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
CODE = ("agent", "exporters", "models", "probes")
SOURCES = sorted(path for folder in (*CODE, "bench", "tests") for path in (ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    """A ceiling is worth more than an average."""
    most = 500 if path.is_relative_to(ROOT / "tests") else 300
    assert len(path.read_text().splitlines()) <= most
    long = [f"{f.name}: {length}" for f in functions(path) if (length := (f.end_lineno or 0) - f.lineno + 1) > 40]
    assert long == []


def test_the_list_of_packages_is_complete() -> None:
    project = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes(), type=dict)
    folders = {path.parent.relative_to(ROOT) for folder in CODE for path in (ROOT / folder).rglob("__init__.py")}
    expected = {"linkgauge"} | {".".join(("linkgauge", *folder.parts)) for folder in folders}
    assert set(project["tool"]["setuptools"]["packages"]) == expected


def test_each_folder_of_code_is_linked_into_the_package() -> None:
    links = {path.name: path.resolve() for path in (ROOT / "src/linkgauge").iterdir() if path.is_symlink()}
    assert links == {name: ROOT / name for name in CODE}


def test_one_importer_for_each_library() -> None:
    """Replacing a library touches one file."""
    importers: dict[str, set[str]] = {}
    for path in (p for p in SOURCES if p.is_relative_to(ROOT) and p.relative_to(ROOT).parts[0] in CODE):
        libraries = (
            r"^\s*(?:import|from) (psutil|click|rich|pynvml|cuda|nccl|tornado|prometheus_client|yaml|bcrypt"
            r"|opentelemetry|pandas|matplotlib)\b"
        )
        for name in re.findall(libraries, path.read_text(), re.MULTILINE):
            importers.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    # The commands, what several of them take, and what they tell.
    several = re.compile(r"agent/(cli|terminal|\w+_command|\w*options)\.py")
    assert [path for path in importers.pop("click") if not several.fullmatch(path)] == []
    assert all(len(files) == 1 for files in importers.values()), importers


def test_no_test_module_imports_another() -> None:
    """What tests share is in a module without tests."""
    imports = re.compile(r"^\s*(?:from|import) (test_\w+)", re.MULTILINE)
    assert {path.name: found for path in SOURCES if (found := imports.findall(path.read_text()))} == {}


def test_no_helpers_without_a_noun() -> None:
    assert [path for path in SOURCES if re.search(r"util|helper|(?<!fabric_)manager|common|misc", path.stem)] == []
