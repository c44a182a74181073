"""The service's cycles on recorded nodes, with a clock that the test moves; all faults that it must survive."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.pipeline.hang_guard import HangGuard
from linkgauge.agent.service import checkpoint
from linkgauge.agent.service.config import Config, Probing
from linkgauge.agent.state import acceptance as state
from linkgauge.agent.state import inventory_file
from linkgauge.agent.web.server import serving
from linkgauge.models.diagnosis.hysteresis import restarted
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Run
from linkgauge.models.report import Report
from linkgauge.probes.host.entries import Folder
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, report_of, with_entry
from tests.support.programs.web_clients import get
from tests.support.waiting import until

UNKNOWN = 'linkgauge_verdict{verdict="unknown"}'
YEAR = 365 * 86400.0
RATE = Observation(
    about=Flow("copy", ("gpu0", "numa0"), 1 << 30, "pcie"),
    quantity="rate",
    unit="bytes_per_second",
    value=5.5e10,
    at=0,
    busy=True,
    evidence=Evidence("cuMemcpy", "1 GiB"),
)


def found(report: Report) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in report.findings]


def number(page: bytes, name: str) -> float:
    """The value of the series that begins so."""
    (line,) = (line for line in page.decode().splitlines() if line.startswith(name))
    return float(line.rpartition(" ")[2])


@pytest.fixture
def hgx(service: Callable[..., Node], tmp_path: Path) -> Node:
    return service(tmp_path)


def test_a_cycle_says_what_diagnose_says(hgx: Node) -> None:
    once, first = report_of(node("hgx-h100")), hgx.cycle()
    assert (first.verdict, first.findings, first.levels, first.topology, first.not_checked, first.checks) == (
        once.verdict,
        once.findings,
        once.levels,
        once.topology,
        once.not_checked,
        once.checks,
    )


@pytest.mark.slow
def test_an_hour_of_cycles(service: Callable[..., Node], tmp_path: Path) -> None:
    """How often each source is read. Only the history of one hour grows."""
    at = service(tmp_path, config=Config(cycle="1m"))
    at.cycle()
    first = at.host.reads
    at.cycle(59)
    assert at.host.call_counts == {
        "nvml": 60,
        "link_load": 60,
        "nvml_wiring": 1,
        "ethtool": 1,
        "pci_config": 1,
        "statvfs": 6,
        "fabric_manager": 6,
        "nvme_health": 6,
    }
    assert (at.host.reads - first) / 59 < first
    at.cycle()
    assert at.host.call_counts["nvml_wiring"] == 2
    past = len(at.daemon.memory.past)
    at.cycle(10)
    assert len(at.daemon.memory.past) == past


def test_a_job_makes_cycles_longer(service: Callable[..., Node], tmp_path: Path) -> None:
    at = service(tmp_path)
    idle = at.host.recorded
    evidence = Evidence("nvmlDeviceGetComputeRunningProcesses", "1")
    one = Observation(about="gpu0", quantity="processes", unit="count", value=1, at=idle.taken, evidence=evidence)
    lines = (*idle.calls["nvml",], encode(one))
    every = [at.cycle() and at.daemon.every]
    at.host.recorded = Recorded(idle.taken, idle.entries, {**idle.calls, ("nvml",): lines})
    every.append(at.cycle() and at.daemon.every)
    at.host.recorded = idle
    every.append(at.cycle() and at.daemon.every)
    assert every == [15, 60, 15]


def test_a_fault_appears_settles_and_goes(hgx: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "linkgauge")
    hgx.cycle()
    healthy = hgx.host.recorded
    (path,) = (one for one in healthy.entries if one.endswith("0000:19:00.0/current_link_width"))
    hgx.host.recorded = with_entry(healthy, path, "8")
    verdicts = [hgx.cycle().verdict for _ in range(3)]
    hgx.host.recorded = healthy
    verdicts += [hgx.cycle().verdict for _ in range(3)]
    assert verdicts == ["ok", "failed", "failed", "failed", "ok", "ok"]
    messages = [text for _, _, text in caplog.record_tuples]
    assert messages[0] == "the node is ok"
    assert messages[1].startswith("pcie-link-narrow 0000:19:00.0: ")
    assert messages[2:] == ["the node is failed", "pcie-link-narrow 0000:19:00.0: gone", "the node is ok"]


def test_what_was_plugged_is_found_at_once(hgx: Node) -> None:
    """The service does not wait for its next discovery."""
    hgx.cycle(2)
    assert hgx.host.call_counts["nvml_wiring"] == 1
    hgx.host.recorded = with_entry(hgx.host.recorded, "sys/bus/pci/devices/0000:ff:00.0", Folder())
    hgx.cycle(2)
    assert hgx.host.call_counts["nvml_wiring"] == 2


def test_links_are_followed_anew_when_it_is_looked_what_is_there(hgx: Node) -> None:
    """Also where all names are as before: each hour."""
    forgotten: list[float] = []
    hgx.daemon.forget = lambda: forgotten.append(hgx.monotonic)
    hgx.cycle(10)
    hgx.host.recorded = with_entry(hgx.host.recorded, "sys/bus/pci/devices/0000:ff:00.0", Folder())
    hgx.cycle(10)
    hgx.go(3600)
    hgx.cycle(2)
    assert forgotten == [1000.0, 1000.0 + 10 * 15, 1000.0 + 20 * 15 + 3600]


@pytest.mark.slow
def test_a_driver_that_hangs_is_asked_again_after_1_5_and_30_minutes(
    service: Callable[..., Node], tmp_path: Path
) -> None:
    hgx = service(tmp_path, config=Config(cycle="1m"))
    hgx.host.hangs = {"nvml"}
    report = hgx.cycle()
    assert (report.verdict, found(report)) == ("failed", [("gpu-driver-failed", "node")])
    lost = NotChecked(what="Gpu", subject="node", reason=Reason.NO_ANSWER, detail="no answer within 80 s")
    assert lost in report.not_checked
    at, asked = 0.0, [0.0]
    while at < 4200:
        hgx.cycle()
        at += hgx.daemon.every
        if hgx.host.call_counts["nvml"] > len(asked):
            asked.append(at)
    assert asked == [0, 60, 360, 2160, 3960]
    assert hgx.host.call_counts["link_load"] == 71  # all others as ever
    hgx.host.hangs = set()
    hgx.go(1800)
    assert hgx.cycle(3).verdict == "ok"


def test_a_file_that_hangs_stops_nothing_else(hgx: Node) -> None:
    """A driver waits for its device during a cycle. It is read again after 1, 5 and 30 minutes."""
    hgx.daemon.hang_guard = HangGuard(patience=0.5)
    hgx.cycle(3)
    hgx.host.stuck_file, hgx.host.go = "mlx5_3/ports/1/state", Event()
    report = hgx.cycle(2)
    (gap,) = (one for one in report.not_checked if one.what == "Port")
    assert (report.verdict, found(report)) == ("unknown", [])
    assert gap.why.endswith("mlx5_3/ports/1/state: no answer within 0.5 s")
    page = hgx.pages.read("metrics")
    assert number(page, "linkgauge_stuck_children") == 1
    assert number(page, 'linkgauge_not_checked{check="Port",reason="no-answer"}') == 1
    assert hgx.host.call_counts["link_load"] == 5  # those behind it were asked all the same
    hgx.host.stuck_file = None
    hgx.host.go.set()
    until(lambda: not hgx.daemon.hang_guard.stuck)
    report = hgx.cycle(5)
    assert report.verdict == "ok"
    assert number(hgx.pages.read("metrics"), "linkgauge_stuck_children") == 0


def test_a_scrape_while_something_hangs(service: Callable[..., Node], tmp_path: Path) -> None:
    """The answer comes at once and its age grows. After four cycles it shows that nothing is known."""
    hgx = service(tmp_path)
    hgx.cycle()
    hgx.host.hangs, hgx.host.go = {"nvml"}, Event()
    ended = float(hgx.host.recorded.taken)
    with serving("127.0.0.1:0", hgx.pages) as server:
        loop = Thread(target=hgx.cycle)
        loop.start()
        assert hgx.host.hanging.wait(100)
        shown = []
        for _ in range(5):
            page = get(server)
            assert page.status == 200
            shown.append([number(page.body, name) for name in ("linkgauge_cycle_timestamp", UNKNOWN)])
            hgx.monotonic += 15
        hgx.host.go.set()
        loop.join()
        assert shown == [[ended, 0]] * 4 + [[ended, 1]]
        assert get(server).status == 200


def test_a_source_that_breaks_takes_nothing_else_with_it(hgx: Node, caplog: pytest.LogCaptureFixture) -> None:
    healthy, ports = hgx.cycle(), "infiniband/mlx5_0/ports"
    hgx.host.failing_folder = ports
    report = hgx.cycle()
    why = f"a bug in linkgauge: RuntimeError: a bug at {ports}"
    gap = NotChecked(what="Port", subject="node", reason=Reason.FAULT, detail=why, how="report it, with a capture")
    assert gap in report.not_checked
    assert [run.name for run in report.runs if not run.ok] == ["rdma"]
    logged = [record.getMessage() for record in caplog.records if record.exc_info]
    assert logged == ["source rdma failed (bug in linkgauge)"]
    hgx.host.failing_folder = None
    corrected = hgx.cycle()
    assert (corrected.verdict, corrected.not_checked) == (healthy.verdict, healthy.not_checked)


def test_the_tree_disappears_and_comes_back(hgx: Node) -> None:
    """As in a container whose mount /host/sys is gone. This is not a healthy node without GPUs."""
    assert hgx.cycle().verdict == "ok"
    whole = hgx.host.recorded
    hgx.host.recorded = Recorded(whole.taken, {"": Folder()}, {})
    assert hgx.cycle(3).verdict == "unknown"
    hgx.host.recorded = whole
    assert hgx.cycle(3).verdict == "ok"


@pytest.mark.parametrize("jump", [YEAR, -YEAR, 7200, -7200, -1])
def test_clocks_jump(service: Callable[..., Node], hgx: Node, jump: float) -> None:
    hgx.cycle(3)
    asked = hgx.host.call_counts.copy()
    hgx.host.wall += jump
    for _ in range(3):
        assert hgx.cycle().verdict == "ok"
    # When to ask is a matter of the other clock.
    assert hgx.host.call_counts - asked == {"nvml": 3, "link_load": 3}
    assert max(one.at for one in hgx.daemon.memory.past) <= hgx.host.now()
    hgx.host.wall -= jump
    assert hgx.cycle(3).verdict == "ok"
    assert max(one.at for one in hgx.daemon.memory.past) <= hgx.host.now()
    again = service(Path(hgx.daemon.folder))
    again.host.wall = hgx.host.wall
    checkpoint.load(again.daemon.folder, Memory(), again.host.now())


def test_what_was_measured_ends_after_two_schedules(service: Callable[..., Node], tmp_path: Path) -> None:
    """By the clock on the wall: it was measured before a restart, perhaps. One that was dated in the future, too."""
    for age, left in ((0.0, True), (7100.0, True), (7300.0, False), (-YEAR, False)):
        at = service(tmp_path, config=Config(probes=Probing(every="1h")))
        at.daemon._probe_at = at.monotonic + YEAR  # noqa: SLF001
        now = at.host.now()
        run = Run(name="host_copy", ok=True, seconds=1, at=now - age)
        at.daemon.memory = Memory(measured=(run, replace(RATE, at=now - age)))
        at.cycle()
        assert bool(at.daemon.memory.measured) is left


@pytest.mark.parametrize("folder", ["/proc/linkgauge", "blocked"])
def test_a_state_folder_that_takes_nothing_is_one_warning(
    service: Callable[..., Node], tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str
) -> None:
    if folder == "blocked":
        (tmp_path / "service.json").mkdir()
    at = service(Path("/proc/linkgauge") if folder != "blocked" else tmp_path)
    assert at.cycle(12).verdict == "ok"  # of 15 s: it is tried every five minutes
    at.go(300)
    at.cycle()
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([text for text in warnings if text.endswith(": a restart will lose the current state")]) == 1
    if folder == "blocked":
        (tmp_path / "service.json").rmdir()
        caplog.set_level(logging.INFO, "linkgauge")
        at.daemon.save()
        assert caplog.records[-1].getMessage() == f"{tmp_path}: written again"


def test_a_restart_forgets_nothing(service: Callable[..., Node], hgx: Node) -> None:
    hgx.cycle()
    (path,) = (one for one in hgx.host.recorded.entries if one.endswith("0000:19:00.0/current_link_width"))
    broken = with_entry(hgx.host.recorded, path, "8")
    hgx.host.recorded = broken
    since = [(one.code, one.since) for one in hgx.cycle(3).findings]
    hgx.daemon.memory = replace(hgx.daemon.memory, measured=(replace(RATE, at=hgx.host.now()),))
    hgx.daemon.save()
    again = service(Path(hgx.daemon.folder), config=Config(probes=Probing(every="1h")))
    again.host.recorded, again.host.wall = broken, hgx.host.wall + 60
    inventory, last = inventory_file.load(again.daemon.folder, state.Acceptance(), boot_id=None)
    stored = Memory(inventory=inventory, last=last)
    again.daemon.memory = checkpoint.load(again.daemon.folder, stored, again.host.now())
    histories = restarted(hgx.daemon.memory.histories, rebooted=False)
    assert again.daemon.memory == replace(hgx.daemon.memory, collected={}, histories=histories, listed=frozenset())
    report = again.cycle()
    assert [(one.code, one.since) for one in report.findings] == since  # at once
    assert [level.flow for level in report.levels] == [RATE.about]


@pytest.mark.slow
def test_measurements_have_jitter_and_need_configuration(service: Callable[..., Node], tmp_path: Path) -> None:
    """And only where it is sure that nobody uses the machine: here one has a GPU."""
    at, machine = service(tmp_path), node("hgx-h100")
    evidence = Evidence("nvmlDeviceGetComputeRunningProcesses", "1")
    one = Observation(about="gpu0", quantity="processes", unit="count", value=1, at=machine.taken, evidence=evidence)
    calls = {**machine.calls, ("nvml",): (*machine.calls["nvml",], encode(one))}
    at.host.recorded = Recorded(machine.taken, machine.entries, calls)
    at.cycle(3)
    assert at.daemon.memory.measured == ()
    at.daemon.config = Config(cycle="10m", cycle_busy="10m", probes=Probing(every="1h", jitter="1h"))
    began, tried = at.monotonic, list[float]()
    while at.monotonic < began + 10 * 3600:
        at.cycle()
        if at.daemon.memory.measured:
            tried.append(at.monotonic - began)
            (lost, *_) = (one for one in at.daemon.memory.measured if isinstance(one, NotChecked))
            assert lost.why.startswith("not measured: ")
            at.daemon.memory = replace(at.daemon.memory, measured=())
    steps = [after - before for before, after in pairwise(tried)]
    assert 0 < tried[0] <= 4200
    assert all(3600 <= step <= 7800 for step in steps)
    assert len(set(steps)) > 1


def test_an_acceptance_is_in_force_with_the_next_cycle(hgx: Node, tmp_path: Path) -> None:
    """`linkgauge accept` writes a file, and the service reads it in the next cycle."""
    logged = "[[log]]\ntext = 'nvidia-nvswitch0: SXid (PCI:0000:d9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up'\n"
    hgx.host.recorded = node("hgx-h100", f"\n{logged}")
    assert [(one.code, one.severity) for one in hgx.cycle().findings] == [("nvswitch-error", "critical")]
    state.write(str(tmp_path), state.Acceptance(at=hgx.host.now()))
    assert [one for one in hgx.cycle().findings if one.severity != "info"] == []
    (tmp_path / "accepted.json").write_text("{")  # what cannot be read changes nothing
    assert [one for one in hgx.cycle().findings if one.severity != "info"] == []
