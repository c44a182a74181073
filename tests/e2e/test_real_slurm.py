"""A real Slurm drains a node through our scripts, gives it back after it was accepted, and runs jobs in between."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkgauge.agent.state import status_file
from linkgauge.models.site.schema import read_site
from tests.support.nodes.described import node, report_of
from tests.support.programs import slurm_here
from tests.support.programs.slurm_scripts import FOLDER, Scripts

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

WRONG = '[[machine]]\nname = "ours"\nsource = "a mistake"\ngpu = "*"\nproduct = "*"\ngpus = 9\n'
ENFORCED = '[gate]\nenforce = true\ncodes = ["gpu-missing"]\n'


def installed(scripts: Scripts, folder: Path) -> Path:
    """The scripts with the paths of linkgauge and Slurm: Slurm runs them without an environment."""
    calls = folder / "etc"
    calls.mkdir()
    environment = scripts.environment({"SLURM_CONF": str(folder / "slurm" / "slurm.conf")})
    for name in ("health_check", "prolog", "epilog", "task_prolog"):
        lines = [f"export {key}={shlex.quote(value)}" for key, value in environment.items()]
        (calls / name).write_text("\n".join(["#!/bin/sh", *lines, f"exec {FOLDER / name}", ""]))
        (calls / name).chmod(0o755)
    return calls


def finds(folder: str, text: str) -> None:
    status_file.write(folder, report_of(node("hgx-h100"), read_site(text)), time.time(), 15.0, {})


def accept(scripts: Scripts, folder: str) -> None:
    command = [sys.executable, "-m", "linkgauge", "accept", "--passive", "--anyway", "--state-dir", folder]
    subprocess.run(command, check=True, timeout=120, capture_output=True, env=scripts.environment({}))


def test_a_node_is_drained_and_comes_back(tmp_path: Path) -> None:
    if why := slurm_here.missing():
        pytest.skip(why)
    scripts = Scripts(tmp_path / "scripts")
    (scripts.bin / "scontrol").unlink()
    state, site = str(tmp_path / "state"), tmp_path / "site.toml"
    site.write_text(f'{ENFORCED}disable_file = "{tmp_path}/disabled"\n')
    scripts.linkgauge(site=str(site), state_dir=state)
    finds(state, "")
    with slurm_here.slurm(tmp_path / "slurm", installed(scripts, tmp_path)) as slurm:
        assert slurm.ask("srun", "--immediate=60", "echo", "ran").splitlines()[-1] == "ran"
        finds(state, WRONG)
        shown = slurm.until(lambda shown: "DRAIN" in shown)
        assert "   Reason=linkgauge: gpu-missing node [root@" in shown
        assert "Comment=" not in shown
        finds(state, "")
        accept(scripts, state)
        shown = slurm.until(lambda shown: "drained until the service finds no fault" in "\n".join(scripts.log))
        assert "State=IDLE+DRAIN " in shown
        finds(state, "")
        shown = slurm.until(lambda shown: "DRAIN" not in shown and "State=IDLE " in shown)
        assert "Reason=" not in shown
        assert slurm.ask("srun", "--immediate=60", "echo", "ran again").splitlines()[-1] == "ran again"
        # Slurm starts the epilog after srun has returned.
        slurm.until(lambda shown: len([line for line in scripts.log if line.startswith("job ")]) == 2)
