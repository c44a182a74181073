"""What is measured next: nothing twice, nothing on a busy node, and the slow once more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from linkgauge.agent.idle import busy_because, not_measured
from linkgauge.agent.pipeline import ask
from linkgauge.agent.sources import measure, measure_nothing
from linkgauge.models.report import Finding, FindingKind, Level, Report, Seen
from linkgauge.models.said import NotChecked, Run
from linkgauge.models.topology import Device, Topology
from linkgauge.probes.recorded import Recorded

NODES = Report(
    node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown",
    topology=Topology((Device("numa0", "numa"), Device("numa1", "numa"), Device("0000:17:00.0", "gpu"))),
)  # fmt: skip
MEASURED = replace(NODES, levels=tuple(Level(op="copy", ends=(node,), observed=1e10) for node in ("numa0", "numa1")))


def slow(subject: str, code: str = "bandwidth-low") -> Finding:
    kind: FindingKind = "measurement" if code == "bandwidth-low" else "state"
    return Finding(code=code, kind=kind, severity="warning", subject=subject, message="slow")


def test_a_busy_node_is_said_to_be_busy_once() -> None:
    lost, run = ask(not_measured("the CPUs are 93 % busy"), Recorded(1000, {}))
    assert lost == NotChecked(
        what="bandwidth", subject="node", why="not measured: the CPUs are 93 % busy", how="run it when the node is idle"
    )
    assert isinstance(run, Run)
    assert run.ok
    assert list(measure(replace(NODES, runs=(run,)))) == []


def test_what_was_measured_is_not_measured_again() -> None:
    assert list(measure(MEASURED)) == []
    assert list(measure(replace(MEASURED, findings=(slow("numa1", "memory-errors"), slow("0000:17:00.0"))))) == []


def test_what_was_slow_is_measured_once_more() -> None:
    assert len(list(measure(replace(MEASURED, findings=(slow("numa1"),))))) == 1
    several = replace(slow("package0"), explains=("bandwidth-low:numa0", "bandwidth-low:numa1"))
    assert len(list(measure(replace(MEASURED, findings=(several,))))) == 2


def test_nothing_is_measured_where_nothing_may_be() -> None:
    assert list(measure_nothing(NODES)) == []


def test_this_node_is_idle_or_says_why_not() -> None:
    why = busy_because(NODES)
    assert why is None or why.startswith(("the CPUs are ", "only "))


def test_a_node_that_does_not_say_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert busy_because(NODES) == "nothing says how busy this machine is"
    (tmp_path / "stat").write_text("cpu  1\n")
    assert busy_because(NODES) == "nothing says how busy this machine is"


def test_a_node_whose_gpus_are_in_use_is_busy() -> None:
    used = [seen("gpu0", 0), seen("gpu1", 1), seen("gpu2", 4), seen("gpu2", 9, "ecc_corrected")]
    assert busy_because(replace(NODES, observations=tuple(used))) == "processes use gpu1, gpu2"
    (source,) = measure(replace(NODES, observations=tuple(used)))
    lost, _ = ask(source, Recorded(1000, {}))
    assert isinstance(lost, NotChecked)
    assert lost.why == "not measured: processes use gpu1, gpu2"


def seen(about: str, value: float, quantity: str = "processes") -> Seen:
    return Seen(about=about, quantity=quantity, unit="count", value=value, at="2026-11-21T03:00:00Z")
