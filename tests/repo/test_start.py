"""What a command imports, how many patterns it compiles, and how many data classes it makes.

That was more than half of the time of a command. bench/cost/startup.py measures times.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

ROOT = Path(__file__).parents[2]
# What a command loads when it is imported and run, besides what Python itself has loaded.
PROGRAM = """
import dataclasses, sys, re._compiler
compile, patterns, before = re._compiler.compile, [], set(sys.modules)
make, made = dataclasses._process_class, []
def counted(pattern, flags=0):
    patterns.append(pattern)
    return compile(pattern, flags)
re._compiler.compile = counted
def listed(cls, *arguments):
    made.append(cls)
    return make(cls, *arguments)
dataclasses._process_class = listed
from linkgauge.agent.cli.main import main
try:
    main()
except SystemExit:
    pass
print(len(patterns), len(made), *sorted(set(sys.modules) - before), file=sys.stderr)
"""
# Modules that take 2 to 90 ms, and that no command needs unless it measures, serves or plots.
HEAVY = [
    "bcrypt",
    "concurrent.futures",
    "difflib",
    "http.client",
    "importlib.metadata",
    "importlib.resources",
    "logging",
    "numpy",
    "pandas",
    "pathlib",
    "prometheus_client",
    "psutil",
    "pynvml",
    "random",
    "secrets",
    "ssl",
    "statistics",
    "tempfile",
    "tornado",
    "traceback",
    "yaml",
]
# The most modules of linkgauge, and the most patterns: today's number and about a tenth. Then the most
# data classes: Python compiles the methods of each, which takes 1 ms. Those of msgspec's structs are compiled already.
LIMITS = {"--help": (19, 26, 0), "plan --help": (20, 26, 0), "diagnose --from CAPTURE": (345, 185, 2)}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "node.capture"
    made = CliRunner().invoke(main, ["capture", "--synthetic", str(ROOT / "tests/nodes/hgx-h100.toml"), str(path)])
    assert made.exit_code == 0, made.output
    return path


@pytest.mark.parametrize("command", LIMITS)
def test_what_a_command_imports(command: str, capture: Path) -> None:
    words = [str(capture) if word == "CAPTURE" else word for word in command.split()]
    run = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    patterns, made, *modules = run.stderr.splitlines()[-1].split()
    assert [name for name in HEAVY if name in modules] == []
    own = sum(name.startswith("linkgauge") for name in modules)
    most, most_patterns, most_made = LIMITS[command]
    assert own <= most, own
    assert int(patterns) <= most_patterns, patterns
    assert int(made) <= most_made, made


def test_a_wrong_command_gets_a_suggestion() -> None:
    """Also one that is not imported. Old releases of click suggest nothing."""
    imported, other = (CliRunner().invoke(main, [word]).output for word in ("diagnos", "plna"))
    assert ("'plan'" in other) == ("'diagnose'" in imported), other
