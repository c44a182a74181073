"""Silence is not health: no hang, restart, release or missed cycle of a service removes a finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.pipeline.hang_guard import HangGuard
from linkgauge.agent.service import checkpoint
from linkgauge.agent.web.pages import Pages
from linkgauge.models.diagnosis.hysteresis import stale_findings
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Observation, Record
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.node import BOOT_ID
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import BROKEN, node, with_entry
from tests.support.waiting import until

NARROW = "0000:19:00.0"
FAULTS = f"{BROKEN}[device.gpu2]\ninactive = [3]\n[device.gpu6]\ninactive = [4]\n"


def narrow(healthy: Recorded) -> Recorded:
    (path,) = (one for one in healthy.entries if one.endswith(f"{NARROW}/current_link_width"))
    return with_entry(healthy, path, "8")


def of_boot(recorded: Recorded, boot_id: str) -> Recorded:
    return with_entry(recorded, BOOT_ID, boot_id)


def found(report: Report) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in report.findings if one.severity != "info"]


def stale(report: Report) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in report.findings if one.stale]


@pytest.fixture
def hgx(service: Callable[..., Node], tmp_path: Path) -> Node:
    return service(tmp_path)


def test_a_fault_is_shown_after_the_first_cycle_and_would_close_the_gate(hgx: Node) -> None:
    hgx.host.recorded = narrow(hgx.host.recorded)
    report = hgx.cycle()
    assert (report.verdict, found(report)) == ("failed", [("pcie-link-narrow", NARROW)])
    page = hgx.pages.read("metrics").decode()
    assert f'linkgauge_gate_would_drain{{code="pcie-link-narrow",subject="{NARROW}"}} 1.0' in page


def test_a_driver_that_hangs_clears_no_finding_of_any_gpu_or_kind(hgx: Node) -> None:
    """Also after an hour, when it was asked several times; and what other sources read is still true."""
    broken = node("hgx-h100", FAULTS)
    hgx.host.recorded = broken
    before = hgx.cycle(2)
    hgx.host.hangs = {"nvml"}
    for _ in range(10):
        hgx.go(600)
        report = hgx.cycle(2)
        assert set(found(report)) >= set(found(before))
        assert report.verdict in ("failed", "unknown")
    assert stale(report)
    assert all("no answer within" in one.stale for one in report.findings if one.stale)
    hgx.host.hangs = set()
    hgx.go(1800)
    report = hgx.cycle(3)
    assert (found(report), stale(report)) == (found(before), [])
    hgx.host.recorded = node("hgx-h100")
    hgx.go(3600)  # the slow sources are due too
    assert found(hgx.cycle(3)) == []


def without_answer(recorded: Recorded, gpu: str) -> Recorded:
    """The driver gives no answer for one GPU."""
    records = (decode(line) for line in recorded.calls["nvml",])
    others = [one for one in records if gpu not in (getattr(one, "key", ""), getattr(one, "gpu", ""), about(one))]
    hung = Gpu(key=gpu, failure="no answer within 40 s", failure_reason=Reason.NO_ANSWER)
    calls = {**recorded.calls, ("nvml",): tuple(map(encode, (*others, hung)))}
    return Recorded(recorded.taken, recorded.entries, calls)


def about(record: Record) -> str:
    return str(record.about).partition("/")[0] if isinstance(record, Observation) else ""


def test_one_gpu_that_hangs_keeps_its_own_findings_and_those_of_others(hgx: Node) -> None:
    hgx.host.recorded = node("hgx-h100", FAULTS)
    before = hgx.cycle(2)
    hgx.host.recorded = without_answer(hgx.host.recorded, "gpu2")
    for _ in range(5):
        hgx.go(600)
        report = hgx.cycle(2)
        assert set(found(report)) >= set(found(before))
    (gpu,) = (device.id for device in report.topology.devices if "gpu2" in device.aliases)
    assert [subject for code, subject in stale(report) if code == "nvlink-inactive"] == [gpu]
    repaired = without_answer(node("hgx-h100"), "gpu2")  # the others are repaired
    hgx.host.recorded = repaired
    hgx.go(3600)
    report = hgx.cycle(3)
    assert stale(report) == [("nvlink-inactive", gpu)]
    assert set(found(report)) == {("nvlink-inactive", gpu), ("gpu-driver-failed", gpu)}
    assert report.verdict == "failed"


def test_a_file_that_hangs_makes_the_finding_stale_and_the_verdict_unknown(hgx: Node) -> None:
    hgx.daemon.hang_guard = HangGuard(patience=0.2)
    healthy = hgx.host.recorded
    hgx.host.recorded = narrow(healthy)
    hgx.cycle()
    hgx.host.stuck_file, hgx.host.go = f"{NARROW}/current_link_width", Event()
    report = hgx.cycle()
    assert (report.verdict, stale(report)) == ("unknown", [("pcie-link-narrow", NARROW)])
    hgx.go(7200)
    report = hgx.cycle()
    assert (report.verdict, stale(report)) == ("unknown", [("pcie-link-narrow", NARROW)])
    assert 'linkgauge_gate_would_drain{code="pcie-link-narrow"' in hgx.pages.read("metrics").decode()
    hgx.host.stuck_file, hgx.host.recorded = None, healthy
    hgx.host.go.set()
    until(lambda: not hgx.daemon.hang_guard.stuck)
    hgx.go(1800)
    assert hgx.cycle(3).verdict == "ok"


def test_a_stale_finding_can_be_silenced(hgx: Node) -> None:
    hgx.host.recorded = node("hgx-h100", FAULTS)
    hgx.cycle(2)
    hgx.host.hangs = {"nvml"}
    hgx.go(600)
    codes = {code for code, _ in stale(hgx.cycle())}
    hgx.daemon.site = Site(ignore=dict.fromkeys(codes, "ordered"))
    assert {one.silenced for one in hgx.cycle().findings if one.stale} == {"ordered"}


def test_a_service_that_stops_shows_its_findings_as_stale(hgx: Node) -> None:
    hgx.host.recorded = narrow(hgx.host.recorded)
    hgx.cycle()
    hgx.go(3600)
    page = hgx.pages.read("metrics").decode()
    assert 'linkgauge_verdict{verdict="unknown"} 1.0' in page
    assert f'linkgauge_finding{{code="pcie-link-narrow",subject="{NARROW}"}} 1.0' in page
    assert f'linkgauge_finding_stale{{code="pcie-link-narrow",subject="{NARROW}"}} 1.0' in page


def again(service: Callable[..., Node], one: Node, recorded: Recorded, boot_id: str) -> Node:
    """The service after kill -9, with the pages that it serves before its first cycle."""
    after = service(Path(one.daemon.folder))
    after.host.recorded, after.host.wall = of_boot(recorded, boot_id), one.host.wall + 60
    memory = checkpoint.load(one.daemon.folder, Memory(boot_id=boot_id), after.host.now())
    after.pages = Pages(monotonic=lambda: after.monotonic, findings=stale_findings(memory.histories))
    after.daemon.memory, after.daemon.pages = memory, after.pages
    return after


@pytest.mark.parametrize("boot_id", ["one", "two"])
@pytest.mark.parametrize("repaired", [False, True])
def test_after_a_restart_or_a_boot_findings_are_stale_until_the_first_cycle(
    service: Callable[..., Node], hgx: Node, boot_id: str, repaired: bool
) -> None:
    healthy = of_boot(hgx.host.recorded, "one")
    hgx.host.recorded = narrow(healthy)
    since = hgx.cycle(3).findings[0].since
    after = again(service, hgx, healthy if repaired else narrow(healthy), boot_id)
    page = after.pages.read("metrics").decode()
    labels = f'{{code="pcie-link-narrow",subject="{NARROW}"}}'
    assert 'linkgauge_verdict{verdict="unknown"} 1.0' in page
    assert f"linkgauge_finding{labels} 1.0" in page
    assert f"linkgauge_finding_stale{labels} 1.0" in page
    assert f"linkgauge_finding_timestamp_seconds{labels}" in page
    report = after.cycle()
    if not repaired:
        assert (report.verdict, found(report), stale(report)) == ("failed", [("pcie-link-narrow", NARROW)], [])
        assert report.findings[0].since == since
    elif boot_id == "two":
        assert (report.verdict, found(report)) == ("ok", [])
    else:  # absent in one look of three, as without a restart
        assert (report.verdict, stale(report)) == ("failed", [])
        assert after.cycle(2).verdict == "ok"


def test_a_finding_of_another_boot_stays_stale_while_its_source_hangs(service: Callable[..., Node], hgx: Node) -> None:
    broken = node("hgx-h100", FAULTS)
    hgx.host.recorded = of_boot(broken, "one")
    before = hgx.cycle(2)
    after = again(service, hgx, broken, "two")
    after.host.hangs = {"nvml"}
    report = after.cycle(3)
    assert set(found(report)) >= set(found(before))
    assert stale(report)
