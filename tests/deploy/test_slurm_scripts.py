"""The scripts of deploy/slurm: their calls, and when a prolog fails. test_real_slurm.py runs a real Slurm."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from linkgauge.agent.slurm.health_check import CheckRecord, keep
from linkgauge.agent.state import status_file
from linkgauge.models.site.schema import read_site
from tests.support.nodes.described import node, report_of
from tests.support.programs.slurm_scripts import FOLDER, Scripts
from tests.support.programs.slurm_stub import Cluster

SCRIPTS = ["health_check", "prolog", "epilog", "task_prolog", "linkgauge.nhc", "gate.sbatch", "fabric.sbatch"]
WRONG = '[[machine]]\nname = "ours"\nsource = "a mistake"\ngpu = "*"\nproduct = "*"\ngpus = 9\n'
ENFORCED = '[gate]\nenforce = true\ncodes = ["gpu-missing"]\n'
SLURM = re.compile(r"\b(scontrol|sinfo|squeue|scancel|sacct|sbatch|sacctmgr)\b")


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path / "scripts")


def evaluated(scripts: Scripts, site: str = WRONG + ENFORCED) -> str:
    """A service that found what the site file says; the folder of its state."""
    folder = str(scripts.folder / "state")
    status_file.write(folder, report_of(node("hgx-h100"), read_site(site)), time.time(), 15.0, {})
    path = scripts.folder / "site.toml"
    programs = f'[environment]\nPATH = "{scripts.bin}"\n'  # the PATH of the caller does not count for root
    path.write_text(f'{programs}{site}disable_file = "{scripts.folder}/disabled"\n')
    scripts.linkgauge(site=str(path), state_dir=folder)
    return folder


@pytest.mark.parametrize("name", SCRIPTS)
def test_shells_can_read_them(name: str) -> None:
    subprocess.run(["bash", "-n", FOLDER / name], check=True, timeout=60)
    subprocess.run(["sh", "-n", FOLDER / name], check=True, timeout=60)
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", FOLDER / name], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == ""


def test_all_of_them_are_here() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*SCRIPTS, "slurm.conf"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_none_calls_a_command_of_slurm(name: str) -> None:
    """The program does, for the health check alone. The job of an example has srun, which is its work."""
    lines = [line.partition("#")[0] for line in (FOLDER / name).read_text().splitlines()]
    assert [line for line in lines if SLURM.search(line)] == []
    assert ("--slurm" in "\n".join(lines)) == (name in ("health_check", "fabric.sbatch"))


@pytest.mark.parametrize(("code", "fails"), [(0, 0), (1, 0), (2, 1), (3, 0), (64, 0), (70, 0), (124, 0), (137, 0)])
def test_a_prolog_fails_for_a_closed_gate_alone(scripts: Scripts, code: int, fails: int) -> None:
    scripts.program(
        "linkgauge", f'echo "$*" >> {scripts.folder}/calls\n[ "$1" != gate ] || {{ echo why; exit {code}; }}'
    )
    done = scripts.run("prolog", SLURM_JOB_ID="4711")
    assert (done.returncode, done.stdout, done.stderr) == (fails, "", "")
    assert scripts.calls == ["hold", "gate --counted", *(["window open 4711"] if not fails else [])]
    assert scripts.log == (["job 4711: why"] if fails else [])


@pytest.mark.parametrize("name", ["health_check", "prolog", "epilog", "task_prolog"])
def test_without_linkgauge_jobs_run(scripts: Scripts, name: str) -> None:
    done = scripts.run(name, SLURM_JOB_ID="4711", PATH="/usr/bin:/bin", LINKGAUGE_PATH=f"{scripts.bin}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_a_prolog_that_found_something_waits_for_the_health_check_and_asks_slurm_nothing(scripts: Scripts) -> None:
    folder = evaluated(scripts)
    assert scripts.run("prolog", SLURM_JOB_ID="1").returncode == 0
    keep(folder, CheckRecord(drained="linkgauge: gpu-missing node"))
    assert scripts.run("prolog", SLURM_JOB_ID="2").returncode == 1
    assert scripts.log[-1].startswith("job 2: closed for gpu-missing node: ")
    (scripts.folder / "disabled").touch()
    assert scripts.run("prolog", SLURM_JOB_ID="3").returncode == 0
    assert [call for call in scripts.calls if not call.startswith("linkgauge")] == []


def test_what_a_job_saw_is_in_the_log(scripts: Scripts) -> None:
    evaluated(scripts, "[gate]\n")
    scripts.run("prolog", SLURM_JOB_ID="4711")
    assert scripts.run("epilog", SLURM_JOB_ID="4711").returncode == 0
    assert [line.partition(":")[0] for line in scripts.log if line.startswith("job")] == ["job 4711"]
    scripts.run("epilog", SLURM_JOB_ID="4711")
    assert scripts.log[-1] == "Error: job 4711 has no open window: 'linkgauge window open 4711' opens one"


@pytest.mark.slow
def test_the_health_check_drains_through_scontrol(scripts: Scripts, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster", [f"gpu-{number}" for number in range(100)])
    evaluated(scripts)
    shutil.copy(cluster.program, scripts.bin / "scontrol")
    done = scripts.run("health_check", SLURMD_NODENAME="gpu-7")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert cluster.drained == ["gpu-7"]
    assert cluster.get("gpu-7", "Reason").startswith("linkgauge: gpu-missing node [")
    assert scripts.log[0].startswith("drained for gpu-missing node: ")


def test_a_task_says_what_is_wrong_to_its_job(scripts: Scripts) -> None:
    scripts.program("linkgauge", f'echo "$*" >> {scripts.folder}/calls; echo "memlock-low  64 kB"; exit 2')
    assert scripts.run("task_prolog", SLURM_LOCALID="0").stdout == "print memlock-low  64 kB\n"
    assert scripts.run("task_prolog", SLURM_LOCALID="1").stdout == ""
    assert scripts.calls == ["diagnose --context job --passive"]
    scripts.program("linkgauge", "echo ok")
    assert scripts.run("task_prolog", SLURM_LOCALID="0").stdout == ""


def test_nhc_runs_the_health_check_and_goes_on(scripts: Scripts) -> None:
    scripts.program("health", f"echo health >> {scripts.folder}/calls; exit 3")
    text = f'. {FOLDER}/linkgauge.nhc; check_linkgauge || die "it failed"; echo went on'
    done = subprocess.run(
        ["bash", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**scripts.environment({}), "LINKGAUGE_HEALTH_CHECK": str(scripts.bin / "health")},
    )
    assert (done.stdout, done.stderr, scripts.calls) == ("went on\n", "", ["health"])


@pytest.mark.parametrize(
    ("bad", "runs", "code"),
    [("", "srun --nodes=4 hostname", 0), ("n3", "srun --nodes=4 --exclude=n3 hostname", 0), ("n3 n4", None, 75)],
)
def test_a_job_goes_around_bad_nodes(scripts: Scripts, bad: str, runs: str | None, code: int) -> None:
    gate = f"for name in n1 n2 n3 n4 n5; do SLURMD_NODENAME=$name BAD='{bad}' bash -c \"$4\"; done"
    scripts.program("srun", f'if [ "$2" = bash ]; then {gate}; else echo "srun $*" >> {scripts.folder}/calls; fi')
    scripts.program("linkgauge", 'case " $BAD " in *" $SLURMD_NODENAME "*) exit 2 ;; esac')
    done = scripts.run("gate.sbatch", SLURM_NNODES="5")
    assert (done.returncode, scripts.calls) == (code, [runs] if runs else [])


@pytest.mark.parametrize("written", [True, False])
def test_a_job_measures_between_nodes_and_drains_by_the_report(scripts: Scripts, written: bool) -> None:
    report = scripts.folder / "report.json"
    scripts.program("srun", f'echo "srun $*" >> {scripts.folder}/calls\nshift 3\n"$@"')
    scripts.program("linkgauge", f'[ "$1" != fabric ] || {{ {"printf x" if written else ":"} > {report}; exit 1; }}')
    done = subprocess.run(
        [FOLDER / "fabric.sbatch", report],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=scripts.environment({"SLURM_JOB_ID": "7", "SLURM_CONF_DIR": str(scripts.folder)}),
    )
    first = "srun --ntasks-per-node=1 --kill-on-bad-exit=0"
    calls = [f"{first} --wait=900 linkgauge fabric --format json --output {report} --budget 300s,100TB"]
    calls += [f"{first} --wait=120 linkgauge gate --slurm --fabric {report}"] if written else []
    assert (done.returncode, done.stderr, scripts.calls) == (1, "", calls)
