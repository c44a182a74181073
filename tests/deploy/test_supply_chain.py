"""Packages and containers contain only files whose hashes are in the repository, and the list of their components."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import tomli

from tests.support.paths import ROOT

PACKAGES = ROOT / "deploy/packages"
_NAME = re.compile(r"([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*(?:([<>=]=?)\s*([0-9.]+))?")


def locked(name: str) -> dict[str, tuple[str, int]]:
    """The packages of a lock file: version, and number of hashes."""
    found: dict[str, tuple[str, int]] = {}
    for block in re.split(r"^(?=[a-z0-9])", (PACKAGES / name).read_text(), flags=re.MULTILINE):
        if match := re.match(r"([a-z0-9.-]+)==([0-9][\w.]*)", block):
            found[match[1]] = match[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}(?![0-9a-f])", block))
    return found


def required(lines: list[str]) -> dict[str, str]:
    """The packages of requirements, and their lowest versions. Packages for Python 3.10 alone are left out."""
    matches = [_NAME.match(line) for line in lines if "< '3.11'" not in line]
    return {match[1].lower().replace("_", "-"): match[3] or "0" for match in matches if match}


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall("[0-9]+", version))


def of_project() -> list[str]:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (PACKAGES / "requirements.lock").read_text().splitlines()[0].removeprefix("# extras: ").split(",")
    assert extras == ["web", "cuda"]
    return [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]


def of_build() -> list[str]:
    lines = (PACKAGES / "build.in").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(("lock", "wanted"), [("requirements.lock", of_project()), ("build.lock", of_build())])
def test_each_dependency_is_locked_with_hashes(lock: str, wanted: list[str]) -> None:
    versions = locked(lock)
    for name, least in required(wanted).items():
        assert number(versions[name][0]) >= number(least), name
    assert all(hashes for _, hashes in versions.values())


def test_the_tools_of_the_build_are_those_of_the_project() -> None:
    build = tomli.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) <= set(of_build())


def commands(script: Path) -> list[str]:
    text = script.read_text().replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if re.search(r"pip\S* (?:install|wheel|download)", line)]


def test_no_script_of_packages_and_images_downloads_without_hashes() -> None:
    scripts = [path for path in (ROOT / "deploy").rglob("*") if path.suffix == ".sh" or path.name == "Containerfile"]
    found = [command for script in scripts for command in commands(script)]
    assert len(found) >= 4
    for command in found:
        assert "--require-hashes" in command or "--no-index" in command or "--no-build-isolation" in command, command


def test_the_build_refuses_extras_without_a_lock(tmp_path: Path) -> None:
    done = subprocess.run(
        [PACKAGES / "build.sh", "tree", tmp_path],
        env={**os.environ, "EXTRAS": "web,nccl"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert "is not for the extras web,nccl" in done.stderr
    assert list(tmp_path.iterdir()) == []
