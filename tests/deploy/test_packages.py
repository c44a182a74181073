"""Parts of deploy/packages. try.sh tests the packages themselves; it needs minutes and root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from linkgauge.agent.cli.main import main
from linkgauge.agent.service.config import Config
from linkgauge.models.site.schema import read_site
from linkgauge.models.site.toml_tables import read_tables

PACKAGES = Path(__file__).parents[2] / "deploy/packages"
CANNOT = 77  # the exit code of what was not tried
SHELLS = {  # how each asks for what may follow "linkgauge diag"
    "bash": "source {script}; COMP_WORDS=(linkgauge diag) COMP_CWORD=1 COMP_TYPE=9; _linkgauge_completion linkgauge; "
    'echo "${{COMPREPLY[@]}}"',
    "fish": "source {script}; complete -C 'linkgauge diag'",
    "zsh": "autoload -U compinit; compinit -D; source {script}; echo $_comps[linkgauge]",
}
TOLD = {
    "bash": "diagnose\n",
    "fish": "diagnose\tFind faults of the links of a node.\n",
    "zsh": "_linkgauge_completion\n",
}


def test_what_is_in_etc_is_what_holds_without_it_and_each_line_is_right() -> None:
    config, site = ((PACKAGES / "etc" / name).read_text() for name in ("linkgauge.toml", "site.toml"))
    assert read_tables(config, Config) == Config()
    assert read_site(site) == read_site("")
    settings, uncommented = read_tables(uncomment(config), Config), read_site(uncomment(site))
    assert (settings.cycle, settings.cycle_busy, settings.slow, settings.discovery) == tuple(
        getattr(Config(), name) for name in ("cycle", "cycle_busy", "slow", "discovery")
    )
    assert (settings.listen, settings.probes.every, uncommented.labels["rack"]) == (Config().listen, "6h", "r7")


def uncomment(text: str) -> str:
    """The lines that are examples, without what makes them comments."""
    return "\n".join(line[2:] for line in text.splitlines() if re.match(r'# (?:\[|\w+ = |"\S+" = )', line))


@pytest.mark.parametrize(
    "script", ["build.sh", "try.sh", "linkgauge", *(f"debian/{name}" for name in ("postinst", "prerm", "postrm"))]
)
def test_shells_can_read_the_scripts(script: str) -> None:
    path = PACKAGES / script
    shell = path.read_text().splitlines()[0].rpartition("/")[2].rpartition(" ")[2]
    assert os.access(path, os.X_OK)
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def commands(command: click.Command, name: str) -> Iterator[str]:
    yield name
    if isinstance(command, click.Group):
        context = click.Context(command)
        for further in command.list_commands(context):
            below = command.get_command(context, further)
            assert below
            yield from commands(below, f"{name}-{further}")


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_every_command_has_a_page(tmp_path: Path) -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    writing = [sys.executable, str(PACKAGES / "man_pages.py"), str(tmp_path)]
    subprocess.run(writing, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": path})
    pages = sorted(tmp_path.iterdir())
    assert {page.stem for page in pages} == {*commands(main, "linkgauge")}
    for page in pages:
        done = subprocess.run(
            ["man", "--warnings", "--encoding=utf8", "-l", page],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"},
        )
        assert "SYNOPSIS" in done.stdout
        assert done.stderr == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete(shell: str, tmp_path: Path) -> None:
    """With the script that the packages install, and the command on the path."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    command = tmp_path / "linkgauge"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linkgauge "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    script = tmp_path / "script"
    script.write_bytes(
        subprocess.run([command, "completion", shell], capture_output=True, check=True, env=environment).stdout
    )
    done = subprocess.run(
        [shell, "-c", SHELLS[shell].format(script=script)], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout, done.stderr) == (TOLD[shell], "")


@pytest.mark.skipif("LINKGAUGE_TRY_PACKAGES" not in os.environ, reason="takes minutes: LINKGAUGE_TRY_PACKAGES=1")
def test_packages_are_built_installed_run_and_purged() -> None:
    done = subprocess.run(
        [PACKAGES / "try.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode == CANNOT:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
