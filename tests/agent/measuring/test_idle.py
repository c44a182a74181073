"""Whether this machine may be measured: not if a job owns or uses it, and not if this is not known."""

from __future__ import annotations

import time
from getpass import getuser
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from linkgauge.agent.measuring.idle import busy_reason, claimed_by, not_measured
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Run
from linkgauge.models.report import Report, ReportedObservation
from linkgauge.probes.calls import hold
from linkgauge.probes.host.recorded import Recorded
from tests.support.mounts import needs_proc
from tests.support.nodes.trees import tree

EMPTY = Recorded(1000, {})
REPORT = Report(node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown")


@pytest.fixture(autouse=True)
def _nobody_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))


def seen(about: str, value: float, quantity: str = "processes") -> ReportedObservation:
    return ReportedObservation(about=about, quantity=quantity, unit="count", value=value, at="2026-11-21T03:00:00Z")


def busy(*observations: ReportedObservation) -> str | None:
    return busy_reason(replace(REPORT, observations=observations), EMPTY)


def test_a_busy_node_says_why_it_is_not_measured() -> None:
    lost, run = collect(not_measured("the CPUs are 93 % busy"), EMPTY)
    assert lost == NotChecked(
        what="bandwidth",
        subject="node",
        reason=Reason.NOT_MEASURED,
        detail="not measured: the CPUs are 93 % busy",
        how="run it when the node is idle; --owner names a job of your own, --force measures all the same",
    )
    assert isinstance(run, Run)
    assert run.ok


@needs_proc
def test_this_node_is_idle_or_says_why_not() -> None:
    why = busy()
    assert why is None or why.startswith(("the CPUs are ", "only "))


def test_a_node_that_does_not_say_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert busy() == "the load of this machine is not known"
    (tmp_path / "stat").write_text("cpu  1\n")
    assert busy() == "the load of this machine is not known"


def test_a_node_whose_gpus_are_in_use_is_busy() -> None:
    used = [seen("gpu0", 0), seen("gpu1", 1), seen("gpu2", 4), seen("gpu2", 9, "ecc_corrected")]
    assert busy(*used) == "processes use gpu1, gpu2"
    assert busy(seen("gpu0", 3e9, "memory_used"), seen("gpu1", 5e8, "memory_used")) == "memory of gpu0 is in use"
    assert busy(seen("gpu0", 0.97, "utilization"), seen("gpu1", 0.02, "utilization")) == "gpu0 computes"
    assert busy(*(seen(f"gpu{number}", 1) for number in range(8))) == (
        "processes use gpu0, gpu1, gpu2, gpu3 and 4 more"
    )


def test_gpus_of_unknown_use() -> None:
    """A driver that hangs or has no library, and processes that have opened AMD GPUs."""
    driver = "sys/bus/pci/drivers/nvidia"
    assert busy_reason(REPORT, tree({f"{driver}/bind": ""})) != "the use of the GPUs is not known"
    assert busy_reason(REPORT, tree({f"{driver}/0000:1b:00.0/vendor": "0x10de"})) == (
        "the use of the GPUs is not known"
    )
    amd = {f"sys/class/kfd/kfd/proc/{number}/pasid": "32770" for number in (4711, 4712)}
    assert busy_reason(REPORT, tree(amd)) == "processes 4711, 4712 use its GPUs"
    assert busy_reason(REPORT, tree(dict([*amd.items()][:1]))) == "process 4711 uses its GPUs"


def test_a_node_that_belongs_to_a_job_is_busy_though_nothing_runs() -> None:
    host = tree({"sys/fs/cgroup/system.slice/slurmstepd.scope/job_4711/cgroup.procs": "17"})
    assert claimed_by(host) == "Slurm job 4711 has this machine"
    assert busy_reason(REPORT, host) == "Slurm job 4711 has this machine"
    assert claimed_by(host, "slurm:4711") is None
    assert claimed_by(host, "slurm:471") == "Slurm job 4711 has this machine"


def test_a_scheduler_that_does_not_say_is_a_reason() -> None:
    host = tree({"proc/17/comm": "slurmd"})
    assert claimed_by(host) == (
        "whether a job has this machine is not known: slurmd runs, but no cgroups show its jobs "
        "(ProctrackType is not cgroup)"
    )


def test_the_longest_hold_is_valid_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end must not be rounded up: an end more than 24 h away is ignored."""
    monkeypatch.setattr(time, "time", lambda: 1000.06)
    hold.hold(hold.LONGEST, 7)
    assert hold.held() == f"held by {getuser()}, process 7, for another 86400 s"
    hold.end()


def test_a_held_machine_is_claimed() -> None:
    hold.hold(60, 7)
    why = claimed_by(EMPTY)
    assert why is not None
    assert why.startswith(f"held by {getuser()}, process 7, for another ")
    hold.end()
    assert claimed_by(EMPTY) is None
