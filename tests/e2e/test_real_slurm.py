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
    """The scripts, each told where its linkgauge and its Slurm are, as Slurm gives them no environment."""
    calls = folder / "etc"
    calls.mkdir()
    told = scripts.environment({"SLURM_CONF": str(folder / "slurm" / "slurm.conf")})
    for name in ("health_check", "prolog", "epilog", "task_prolog"):
        lines = [f"export {key}={shlex.quote(value)}" for key, value in told.items()]
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
        told = slurm.until(lambda told: "DRAIN" in told)
        assert "   Reason=linkgauge: gpu-missing node [root@" in told
        assert "Comment=" not in told
        finds(state, "")
        accept(scripts, state)
        told = slurm.until(lambda told: "drained until the service finds no fault" in "\n".join(scripts.log))
        assert "State=IDLE+DRAIN " in told
        finds(state, "")
        told = slurm.until(lambda told: "DRAIN" not in told and "State=IDLE " in told)
        assert "Reason=" not in told
        assert slurm.ask("srun", "--immediate=60", "echo", "ran again").splitlines()[-1] == "ran again"
        # Slurm starts the epilog after srun has returned.
        slurm.until(lambda told: len([line for line in scripts.log if line.startswith("job ")]) == 2)
