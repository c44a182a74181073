"""Real measurements of this machine: how they are stopped, the report of it, and that nothing is left behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from getpass import getuser
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from linkgauge.agent.measuring.budget import BUDGETS, Budget
from linkgauge.agent.measuring.lock import is_locked, locked
from linkgauge.agent.measuring.registry import PROBES, plan_of
from linkgauge.agent.measuring.session import NOTHING, MeasurementOptions, Session, slow_flows
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.agent.pipeline.source import Source
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.machine import Numa
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation
from linkgauge.models.graph.topology import Device, Topology
from linkgauge.models.report import Finding, Level, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.calls import hold
from linkgauge.probes.host.live import Live
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.measure.memory import host_memory
from linkgauge.probes.measure.memory.host_memory import SIZE
from linkgauge.probes.measure.probe import Probe, Scope
from tests.support.nodes.described import node, report_of
from tests.support.nodes.trees import tree
from tests.support.waiting import until

REPORT = Report(
    node=None,
    taken_at=None,
    source="live",
    context="host",
    profile=None,
    verdict="unknown",
    topology=Topology((Device("numa0", "numa"), Device("numa1", "numa"), Device("0000:17:00.0", "gpu"))),
)
COMMAND = [sys.executable, "-m", "linkgauge", "diagnose", "--force", "--only", "host_memory", "--format", "json"]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/sys/devices/system/node/node0/cpulist").is_file(), reason="the kernel shows no NUMA nodes"
    ),
]


@pytest.fixture(autouse=True)
def _a_lock_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))


@pytest.fixture
def run() -> Iterator[subprocess.Popen[str]]:
    """A diagnosis in a group of its own, as a shell starts it; its measuring child stands still, so that it lasts."""
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        until(lambda: any(map(_works, measuring(process))))
        for child in measuring(process):
            child.suspend()
        yield process
        process.kill()


def _works(child: psutil.Process) -> bool:
    """Whether it holds memory to measure. Before, it may not have asked the kernel to end it with its parent."""
    with suppress(psutil.Error):
        return bool(child.memory_info().rss > 64 << 20)
    return False


def measuring(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The process that moves bytes, below the process that runs the command; others read, and may end meanwhile."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if child.cmdline()[-2:-1] == ["host_memory"]:
                found.append(child)
    return found


def ended(child: psutil.Process) -> bool:
    """Also where nobody has asked yet how."""
    return not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


class Gap(NamedTuple):
    """What a report in JSON says that was not checked."""

    what: str
    subject: str
    why: str
    how: str | None


def finished(process: subprocess.Popen[str], code: int) -> list[Gap]:
    """What a run says that it did not check, once it has ended as it should."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert is_locked() is None
    gaps = json.loads(output)["not_checked"]
    return [Gap(**gap) for gap in gaps if gap["what"] != "Pci.acs"]


def test_hold_makes_it_let_go(run: subprocess.Popen[str]) -> None:
    (child,) = measuring(run)
    held = subprocess.run([sys.executable, "-m", "linkgauge", "hold", "--for", "30s"], timeout=60, check=False)
    assert held.returncode == 0
    assert ended(child)
    lost = [gap for gap in finished(run, 0) if "held by " in gap.why]
    assert [gap.what for gap in lost][:1] == ["host_memory"]
    assert lost[0].why.startswith("stopped: held by ")


def test_a_hold_is_at_most_24_hours() -> None:
    command = [sys.executable, "-m", "linkgauge", "hold", "--for"]
    done = subprocess.run([*command, "25h"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64
    assert "--for 25h: the maximum is 24h" in done.stderr
    assert hold.held() is None
    assert subprocess.run([*command, "24h"], timeout=60, check=False).returncode == 0
    assert hold.held()


def test_ctrl_c_still_says_what_was_found(run: subprocess.Popen[str]) -> None:
    (child,) = measuring(run)
    os.killpg(run.pid, signal.SIGINT)
    assert Gap("host_memory", "node", "interrupted", None) in finished(run, 130)
    until(lambda: ended(child))  # the kernel kills it when the process above it has ended


def test_a_probe_that_is_killed_is_one_gap(run: subprocess.Popen[str]) -> None:
    (child,) = measuring(run)
    child.kill()
    assert Gap("host_memory", "node", "its process ended with -9", None) in finished(run, 0)


def test_a_probe_ends_with_its_command(run: subprocess.Popen[str]) -> None:
    (child,) = measuring(run)
    child.resume()
    until(lambda: child.nice() == 10)  # it has begun
    child.suspend()
    run.kill()
    until(lambda: ended(child))
    assert is_locked() is None


def test_a_second_run_does_not_measure() -> None:
    with locked() as why:
        assert why is None
        with locked() as other:
            assert other == f"another run measures this machine (process {os.getpid()})"
        report = diagnose(Live(), (), Session(MeasurementOptions(force=True), Live()).probes, Site()).report
        assert [gap for gap in report.not_checked if gap.what != "idle"] == []  # of nothing that is known, nothing
        session = Session(MeasurementOptions(force=True), Live())
        gap = [one for source in session.probes(REPORT) for one in source.read(Live())][
            -1
        ]  # others: whether it is idle
        assert isinstance(gap, NotChecked)
        assert gap.why == f"not measured: another run measures this machine (process {os.getpid()})"
    assert is_locked() is None


def test_a_lock_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path / "nowhere"))
    with locked() as why:
        assert why == f"the lock {tmp_path}/nowhere/linkgauge.lock cannot be taken: No such file or directory"


@pytest.mark.parametrize("name", ["hgx-h100", "oci-h100", "vm-p5"])
def test_many_disks_leave_time_for_collectives(name: str) -> None:
    """Sixteen disks take a minute. Only disks at the end of the list do not fit."""
    report = report_of(node(name))
    ends = frozenset(device.id for device in report.topology.devices)
    wanted = Scope(effort="full", ends=ends)
    planned = [probe for name in PROBES for probe in plan_of(name)(report, wanted)]
    last = max(place for place, probe in enumerate(planned) if probe.name == "collective")
    assert sum(probe.seconds for probe in planned[: last + 1]) <= BUDGETS["full"].seconds


def test_where_requests_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All users use the folder of the packages. Without it, root creates it."""
    monkeypatch.delenv("LINKGAUGE_LOCK_DIR")
    folder = tmp_path / "run"
    monkeypatch.setattr(hold, "_FOLDER", str(folder))
    assert hold.folder() == (str(folder) if os.geteuid() == 0 else hold.own_folder())
    folder.mkdir(mode=0o555, exist_ok=True)
    assert hold.folder() == str(folder)
    assert folder.stat().st_mode & stat.S_IWOTH == 0


def test_foreign_files_do_not_block(tmp_path: Path) -> None:
    """Pipes that nobody answers, and text that is meant for terminals."""
    for name in ("linkgauge.lock", "linkgauge.hold"):
        os.mkfifo(tmp_path / name)
        writer = os.open(tmp_path / name, os.O_RDWR)
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert hold.held() is None
        assert is_locked() is None
        os.close(writer)
        (tmp_path / name).unlink()
    with locked():
        (tmp_path / "linkgauge.lock").write_text("\x1b]0;root\a")
        assert is_locked() == "another run measures this machine (process unknown)"


def test_a_damaged_hold_file_is_ignored(tmp_path: Path) -> None:
    for text in ("", "nan me", "1e300 me", "5 me", "\0\0\0"):
        (tmp_path / "linkgauge.hold").write_text(text)
        assert hold.held() is None
    hold.hold(60, 7)
    assert (hold.held() or "").startswith(f"held by {getuser()}, process 7, for another ")
    hold.end()
    hold.end()
    assert hold.held() is None


def names(session: Session, report: Report) -> list[tuple[str, ...]]:
    """The calls of the session's probes. The recorded machine has their answers."""
    return [(one.read.name, *one.read.args) for one in session.probes(report) if isinstance(one.read, Probe)]


def recorded(*nodes: str) -> Recorded:
    calls: dict[tuple[str, ...], tuple[str, ...]] = {
        ("host_memory", node): (encode(copied(node, 2e10)),) for node in nodes
    }
    return tree({"sys/kernel/x": ""}, calls)


def copied(node: str, rate: float) -> Observation:
    return Observation(
        about=Flow("copy", (node,), SIZE),
        quantity="rate",
        unit="bytes_per_second",
        value=rate,
        at=1000,
        busy=True,
        evidence=Evidence("numpy.copyto", "4 threads"),
    )


def test_a_recorded_machine_says_what_was_measured_then() -> None:
    host = recorded("numa0")
    assert names(Session(MeasurementOptions(), host), REPORT) == [("host_memory", "numa0")]
    assert names(Session(MeasurementOptions(skip=frozenset({"host_memory"})), host), REPORT) == []
    assert names(Session(MeasurementOptions(only=frozenset({"host_copy"})), host), REPORT) == []
    assert names(Session(NOTHING, host), REPORT) == []

    def read_numa(host: object) -> Iterator[Any]:
        yield Numa(key="numa0", cpus=(0, 1), memory=1 << 34)

    session = Session(MeasurementOptions(), host)
    (level,) = diagnose(host, (Source("numa", read_numa),), session.probes, Site()).report.levels
    assert (level.ends, level.observed) == (("numa0",), 2e10)


def test_what_was_slow_is_measured_once_more() -> None:
    session = Session(MeasurementOptions(force=True, only=frozenset({"host_memory"})), Live())
    assert called(session, REPORT) == ["host_memory", "host_memory"]
    levels = tuple(Level(op="copy", ends=(node,), observed=1e10) for node in ("numa0", "numa1"))
    slow = Finding(code="bandwidth-low", kind="measurement", severity="warning", subject="numa1", message="slow")
    once_more = Report(**{**fields(REPORT), "levels": levels, "findings": (slow,)})
    assert called(session, once_more) == ["host_memory"]
    assert called(session, once_more) == []


def called(session: Session, report: Report) -> list[str]:
    """The names of the probes of a live machine. They do not run."""
    return [one.name for one in session.probes(report) if one.name in PROBES]


def test_a_recorded_machine_repeats_no_call() -> None:
    session = Session(MeasurementOptions(), recorded("numa0", "numa1"))
    assert names(session, REPORT) == [("host_memory", "numa0"), ("host_memory", "numa1")]
    levels = tuple(Level(op="copy", ends=(node,), observed=1e10) for node in ("numa0", "numa1"))
    slow = Finding(code="bandwidth-low", kind="measurement", severity="warning", subject="numa1", message="slow")
    assert names(session, Report(**{**fields(REPORT), "levels": levels, "findings": (slow,)})) == []


def fields(report: Report) -> dict[str, Any]:
    return {name: getattr(report, name) for name in report.__struct_fields__ if name != "schema"}


def test_a_cause_of_several_slow_flows_is_measured_by_them() -> None:
    levels = tuple(Level(op="copy", ends=(node,), observed=1e10) for node in ("numa0", "numa1"))
    several = Finding(
        code="bandwidth-low",
        kind="measurement",
        severity="warning",
        subject="package0",
        message="slow",
        explains=("bandwidth-low:numa0", "bandwidth-low:numa1"),
    )
    state = Finding(code="pcie-link-narrow", severity="critical", subject="numa0", message="narrow")
    assert slow_flows(Report(**{**fields(REPORT), "levels": levels, "findings": (several,)})) == [
        ("numa0",),
        ("numa1",),
    ]
    assert slow_flows(Report(**{**fields(REPORT), "levels": levels, "findings": (state,)})) == []


@pytest.mark.parametrize(
    ("share", "left_out"),
    [(0.1, "it does not fit"), (1.5, "the rest of it does not fit")],  # of one node, of two
)
def test_probes_beyond_the_budget_are_left_out_and_reported(share: float, left_out: str) -> None:
    one, _ = host_memory.plan(REPORT, Scope(ends=frozenset({"numa0", "numa1"})))
    budget = Budget(30, share * one.bytes)
    session = Session(MeasurementOptions(force=True, budget=budget, only=frozenset({"host_memory"})), Live())
    records = [one for source in session.probes(REPORT) for one in collect(source, Live())]
    lost = [one for one in records if isinstance(one, NotChecked) and one.why.startswith("left out")]  # or too slow
    why, how = f"left out: {left_out} into the budget of {budget}", "allow more with --budget, or --only host_memory"
    assert [(one.what, one.why, one.how) for one in lost] == [("host_memory", why, how)]
