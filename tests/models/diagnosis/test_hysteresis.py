"""The findings of the service over time: states settle, events stay until cleared, a flapping state is one finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory, cycle
from linkgauge.models.diagnosis.hysteresis import Histories, restarted, settle
from linkgauge.models.facts.machine import Node, Pci, Port, Rdma
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Observation, Record
from linkgauge.models.facts.units import as_utc, from_utc
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.kernel_log.patterns import group_events
from tests.support.nodes.small_nodes import Clock, copy, gpu_address, gpus_under_switches, source_of, with_fields

NOW, HOUR, DAY = 1.8e9, 3600.0, 86400.0
GPU = gpu_address(0)
XID = "NVRM: Xid (PCI:0000:03:00): 48, pid=1, name=x, DBE"
RESET = f"nvidia {GPU}: reset done"
NIC = Pci(key="0000:04:00.0", parent="pci0000:00", pci_class=0x020700, vendor=0x15B3, device=0x1021)
Shown = list[tuple[str, str, str]]


class At(Clock):
    """A host of a given time."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def log(*lines: tuple[float, str]) -> list[Record]:
    return list(group_events(lines, "dev/kmsg"))


def ran(memory: Memory, at: float, *records: Record) -> tuple[Memory, Report]:
    """A cycle of the daemon in which every source is due."""
    return cycle(At(at), [source_of(*gpus_under_switches(2), *records)], Site(), memory)


def shown(report: Report) -> Shown:
    return [(one.code, one.subject, one.severity) for one in report.findings]


BAD: Shown = [("gpu-xid", GPU, "critical")]


def with_xid() -> Memory:
    """The daemon after a cycle with an Xid in the log."""
    memory, report = ran(Memory(), NOW, *log((NOW - 30, XID)))
    assert shown(report) == BAD
    assert report.verdict == "failed"
    return memory


def test_an_xid_between_two_cycles_is_reported_and_stays_after_a_log_rotation() -> None:
    memory, report = ran(Memory(), NOW - 60)
    assert shown(report) == []
    memory, report = ran(memory, NOW, *log((NOW - 30, XID)))
    assert shown(report) == BAD
    for minute in range(1, 1440, 60):
        memory, report = ran(memory, NOW + 60 * minute)
        assert shown(report) == BAD
        assert report.findings[0].since == as_utc(NOW - 30)


def test_a_reset_that_was_logged_clears_it() -> None:
    memory, report = ran(with_xid(), NOW + 60, *log((NOW - 30, XID), (NOW + 30, RESET)))
    assert shown(report) == [("gpu-xid", GPU, "info")]
    assert report.verdict == "ok"
    assert shown(ran(memory, NOW + 120)[1]) == [("gpu-xid", GPU, "info")]  # history is shown for a day
    assert shown(ran(memory, NOW + DAY + 60)[1]) == []


def test_a_day_clears_it_by_the_time_of_the_reports() -> None:
    memory = with_xid()
    assert shown(ran(memory, NOW - 30 + DAY)[1]) == BAD
    past, report = ran(memory, NOW - 29 + DAY)
    assert shown(report) == [("gpu-xid", GPU, "info")]
    assert shown(ran(past, NOW + DAY)[1]) == []
    memory, report = ran(memory, NOW - 10 * DAY)  # a clock that was set back
    assert shown(report) == BAD


def test_two_sources_that_disagree_are_unknown_to_the_service_too() -> None:
    narrow = Pci(key=GPU, width=8, cites={"width": Evidence("second.txt:1", "another width")})
    memory, at = Memory(), NOW
    for _ in range(3):
        memory, report = cycle(
            At(at), [source_of(*gpus_under_switches(2)), source_of(narrow, name="second")], Site(), memory
        )
        at += 60
    assert [one.reason for one in report.not_checked if one.subject == GPU and one.what == "Pci.width"] == [
        Reason.CONTRADICTED
    ]
    assert report.verdict == "unknown"


def test_accept_clears_it() -> None:
    memory = replace(with_xid(), accepted=NOW + 30)
    assert shown(ran(memory, NOW + 60)[1]) == []
    memory, report = ran(memory, NOW + 60, *log((NOW - 30, XID)))
    assert shown(report) == [("gpu-xid", GPU, "info")]
    assert f"accepted {as_utc(NOW + 30)}" in report.findings[0].message
    memory, report = ran(memory, NOW + 120, *log((NOW - 30, XID), (NOW + 90, XID)))
    assert shown(report) == BAD


def test_a_boot_clears_it() -> None:
    """The log of the new boot does not hold the line; a boot before the line changes nothing."""
    booted = Node(key="node", booted=NOW - 3600)
    assert shown(ran(with_xid(), NOW + 300, booted)[1]) == BAD
    again = replace(booted, booted=NOW + 200)
    memory, report = ran(with_xid(), NOW + 300, again)
    assert (shown(report), report.verdict) == ([], "ok")
    assert shown(ran(memory, NOW + 360, again, *log((NOW + 350, XID)))[1]) == BAD
    lost = with_fields(gpus_under_switches(2), GPU, lost=True)
    for minute in (0, 1):
        memory, report = cycle(At(NOW + 60 * minute), [source_of(*lost, booted)], Site(), memory)
    assert shown(report) == [("gpu-missing", GPU, "critical")]
    _, report = cycle(At(NOW + 300), [source_of(*lost, again)], Site(), memory)
    assert shown(report) == [("gpu-missing", GPU, "critical")]  # a state is evaluated again


def test_of_two_that_the_log_does_not_hold_together_the_graver_stays() -> None:
    milder = XID.replace("48", "94")
    memory, report = ran(with_xid(), NOW + 60, *log((NOW + 30, milder)))
    assert shown(report) == BAD
    assert "Xid 48" in report.findings[0].message
    memory, report = ran(with_xid(), NOW + 60, *log((NOW - 30, XID), (NOW + 10, RESET), (NOW + 30, milder)))
    assert shown(report) == [("gpu-xid", GPU, "warning")]  # the rules know that a reset followed the more severe event


def test_an_xid_goes_under_the_gpu_that_it_took_away() -> None:
    fallen = XID.replace("48", "79")
    lost = with_fields(gpus_under_switches(2), GPU, lost=True)
    memory, report = ran(Memory(), NOW, *log((NOW - 30, fallen)))
    assert shown(report) == BAD
    memory, report = cycle(At(NOW + 60), [source_of(*lost, *log((NOW - 30, fallen)))], Site(), memory)
    assert shown(report) == [("gpu-missing", GPU, "critical")]
    for minute in (2, 3, 4):  # the GPU is back, which does not clear the logged event
        memory, report = ran(memory, NOW + 60 * minute)
    assert shown(report) == BAD


def test_uncorrected_errors_stay_and_corrected_ones_settle() -> None:
    """Both counters are about one function and give the same code."""
    memory = Memory()
    readings = [(0.0, 0.0), (1.0, 500.0), (1.0, 1000.0), (1.0, 1000.0), (1.0, 1000.0)]
    severities = []
    for minute, (fatal, corrected) in zip(
        (0, 1, 2, 3, 20, 1450, 1451, 1452), (*readings, *[readings[-1]] * 3), strict=True
    ):
        at = NOW + 60 * minute
        memory, report = ran(memory, at, count("aer_fatal", fatal, at), count("aer_correctable", corrected, at))
        severities.append([one.severity for one in report.findings])
    assert severities[:5] == [[], ["critical"], *[["critical", "warning"]] * 3]
    assert severities[-1] == ["critical"]  # for more than a day no new one
    memory, report = ran(replace(memory, accepted=at + 1), at + 60, count("aer_fatal", 1.0, at + 60))
    assert shown(report) == [("pcie-errors", GPU, "critical")]  # no earlier count is known, so the count is since boot
    kept = (count("aer_fatal", 1.0, at + 1),)
    memory, report = ran(replace(memory, accepted=at + 61, baseline=kept), at + 120, count("aer_fatal", 1.0, at + 120))
    assert shown(report) == []


def test_memory_errors_are_counted_from_the_acceptance_on_unless_the_machine_was_started_since() -> None:
    now, kept = count("ue_count", 3.0, NOW, "mc0"), count("ue_count", 2.0, NOW - 60, "mc0")
    for accepted, booted, expected in [
        (None, NOW - HOUR, "3 uncorrected errors of memory since boot"),
        (kept, NOW - HOUR, f"1 uncorrected error of memory since the node was accepted {as_utc(NOW - 60)}"),
        (kept, NOW - 30, "3 uncorrected errors of memory since boot"),
        (replace(kept, value=3.0), NOW - HOUR, None),
    ]:
        memory = Memory(baseline=(accepted,) if accepted else (), accepted=accepted.at if accepted else None)
        _, report = ran(memory, NOW, Node(key="node", booted=booted), now)
        counts = [one.message.partition("counted ")[2] for one in report.findings]
        assert counts == ([expected] if expected else [])


def count(quantity: str, value: float, at: float, about: str = GPU) -> Observation:
    seen = Evidence(quantity, f"{value:.0f}")
    return Observation(about=about, quantity=quantity, unit="count", value=value, at=at, evidence=seen)


def port(up: bool) -> list[Record]:
    state = ("ACTIVE", "LinkUp") if up else ("DOWN", "Polling")
    return [
        NIC,
        Rdma(key="mlx5_0", address=NIC.key, driver="mlx5_core"),
        Port(key="mlx5_0/1", device="mlx5_0", state=state[0], physical_state=state[1], link_layer="InfiniBand"),
    ]


def flapped(down: Sequence[bool], with_log: bool, every: float = 60.0) -> list[Report]:
    """The reports of cycles in which the port is up or down. A log, if there is one, has each transition to down."""
    memory, reports, lines = Memory(), [], list[tuple[float, str]]()
    site = Site(fabric=("mlx5_*",))
    for number, gone in enumerate(down):
        at = NOW + every * number
        if gone:
            lines.append((at - 1, f"mlx5_core {NIC.key} mlx5_0: Port: 1 Link DOWN"))
        source = source_of(*gpus_under_switches(2), *port(not gone), *log(*(lines if with_log else [])))
        memory, report = cycle(At(at), [source], site, memory)
        reports.append(report)
    return reports


def test_a_port_that_flaps_is_one_finding_not_sixty() -> None:
    for period in (2, 3, 5):
        reports = flapped([number % period == 1 for number in range(60)], with_log=False)
        begun = next(number for number, report in enumerate(reports) if report.findings)
        assert begun <= 1 + 2 * period
        for number, report in enumerate(reports[begun:], begun):
            (finding,) = report.findings
            times = (number - 1) // period + 1
            since = as_utc(NOW + 60)
            assert (finding.code, finding.subject, finding.since) == ("nic-port-down", "mlx5_0/1", since)
            assert finding.message.endswith(f"; came and went {times} times since {since}")


def test_and_one_beside_what_the_log_tells_of_it() -> None:
    reports = flapped([number % 2 == 1 for number in range(60)], with_log=True)
    assert [len(report.findings) for report in reports] == [0] * 3 + [1] * 57
    assert {one.code for report in reports for one in report.findings} == {"nic-port-down"}


def test_what_flapped_is_gone_an_hour_after() -> None:
    reports = flapped([False, *[True, False] * 5, *[False] * 70], with_log=False)
    last = max(number for number, report in enumerate(reports) if report.findings)
    assert 5 + 59 <= last <= 9 + 60
    reports = flapped([False, True, *[False] * 100] * 3, with_log=False)  # once in an hour and a half, for a minute
    assert not any(report.findings for report in reports)


def test_what_could_not_be_looked_for_did_not_go() -> None:
    down = Finding(code="nic-port-down", severity="critical", subject="mlx5_0/1", message="down")
    histories: Histories = {}
    for minute, (seen, evaluated) in enumerate([(True, True), (False, False)] * 6):
        histories, report = settle(histories, at_minute(minute, [down] if seen else [], {"nic-port-down": evaluated}))
    assert [one.message for one in report.findings] == ["down"]


PORT_DOWN = Finding(code="nic-port-down", severity="critical", subject="mlx5_0/1", message="down")
CHECKED = {"nic-port-down": True}


def test_the_first_report_shows_what_is_certain_and_is_not_ok_while_a_state_waits() -> None:
    likely = replace(PORT_DOWN, confidence="likely")
    verdicts = []
    for finding in (PORT_DOWN, likely):
        histories, first = settle({}, at_minute(0, [finding], CHECKED), first=True)
        second = settle(histories, at_minute(1, [finding], CHECKED))[1]
        verdicts.append([(report.verdict, len(report.findings)) for report in (first, second)])
    assert verdicts == [[("failed", 1), ("failed", 1)], [("unknown", 0), ("failed", 1)]]


def test_a_state_with_a_new_obstacle_is_stale_for_any_time_and_one_with_an_old_obstacle_goes() -> None:
    histories, _ = settle({}, at_minute(0, [PORT_DOWN], CHECKED), first=True)
    for minute in (1, 2, 1000, 100_000):
        histories, report = settle(histories, at_minute(minute, [], CHECKED), obstacles=lambda finding: ["no answer"])
        assert [(report.verdict, one.stale) for one in report.findings] == [("unknown", "no answer")]
    histories, report = settle(
        histories, at_minute(100_001, [PORT_DOWN], CHECKED), obstacles=lambda finding: ["no root"]
    )
    assert [(report.verdict, one.stale) for one in report.findings] == [("failed", None)]
    for minute in (100_002, 100_003):
        histories, report = settle(histories, at_minute(minute, [], CHECKED), obstacles=lambda finding: ["no root"])
    assert (report.verdict, report.findings) == ("ok", ())


def test_accept_clears_a_stale_finding() -> None:
    histories, _ = settle({}, at_minute(0, [PORT_DOWN], CHECKED), first=True)
    stale = at_minute(2, [], CHECKED)
    _, report = settle(histories, stale, accepted=NOW + 60, obstacles=lambda finding: ["no answer"])
    assert (report.verdict, report.findings) == ("ok", ())


def test_after_a_boot_an_event_is_history_and_a_state_goes_with_the_first_check() -> None:
    xid = ONES[0]
    histories, report = settle({}, at_minute(0, [PORT_DOWN, xid], CHECKED), first=True)
    assert [one.severity for one in report.findings] == ["critical", "critical"]
    seen = []
    for rebooted in (True, False):
        _, report = settle(restarted(histories, rebooted), at_minute(1, [], CHECKED), first=True)
        seen.append([(one.code, one.severity) for one in report.findings])
    assert seen == [[], [("gpu-xid", "critical"), ("nic-port-down", "critical")]]


def test_a_measurement_is_stale_until_its_flow_is_measured_again() -> None:
    slow, fast = copy(("gpu0", "pci0000:00"), 20), copy(("gpu0", "pci0000:00"), 55)
    memory, report = ran(Memory(), NOW, slow)
    memory, report = ran(memory, NOW + 60)
    assert [(one.code, one.stale) for one in report.findings] == [("bandwidth-low", "it was not measured again")]
    assert report.verdict == "unknown"
    memory, report = ran(memory, NOW + 120, fast)
    assert report.findings == ()


def test_measurements_pass() -> None:
    slow, fast = copy(("gpu0", "pci0000:00"), 20), copy(("gpu0", "pci0000:00"), 55)
    memory, report = ran(Memory(), NOW, slow)
    assert [one.code for one in report.findings] == ["bandwidth-low"]
    memory, report = ran(memory, NOW + 60, slow)
    assert report.findings[0].since == as_utc(NOW)
    assert "came and went" not in report.findings[0].message
    assert ran(memory, NOW + 120, fast)[1].findings == ()


def test_a_state_clears_as_it_came() -> None:
    narrow = with_fields(gpus_under_switches(2), GPU, width=8)
    memory, seen = Memory(), []
    healthy = gpus_under_switches(2)
    for minute, records in enumerate([healthy, narrow, narrow, narrow, *[healthy] * 3]):
        memory, report = cycle(At(NOW + 60 * minute), [source_of(*records)], Site(), memory)
        seen.append([(one.code, one.since) for one in report.findings])
    assert seen == [[], [], *[[("pcie-link-narrow", as_utc(NOW + 60))]] * 3, [], []]


def test_accept_forgets_what_flapped_but_not_what_is_there() -> None:
    narrow = with_fields(gpus_under_switches(2), GPU, width=8)
    memory = Memory()
    for minute in range(8):
        records = narrow if minute % 2 == 0 else gpus_under_switches(2)
        memory, report = cycle(At(NOW + 60 * minute), [source_of(*records)], Site(), memory)
    assert "came and went 4 times" in report.findings[0].message
    memory = replace(memory, accepted=NOW + 450)
    gone, _ = ran(memory, NOW + 480)
    assert ran(gone, NOW + 540)[1].findings == ()
    memory, report = cycle(At(NOW + 480), [source_of(*narrow)], Site(), memory)
    memory, report = cycle(At(NOW + 540), [source_of(*narrow)], Site(), memory)
    (finding,) = report.findings
    assert finding.since == as_utc(NOW + 480)
    assert "came and went" not in finding.message


# Properties that hold for any series of reports with a few findings.

ONES = [
    Finding(code=code, kind=kind, severity=severity, subject=subject, message=f"{severity} {line}", evidence=line)  # type: ignore[arg-type]
    for code, kind, subject, line in [
        ("gpu-xid", "event", GPU, (Evidence("log", "xid"),)),
        ("pcie-errors", "event", GPU, (Evidence("log", "aer"),)),
        ("pcie-errors", "state", GPU, ()),
        ("gpu-missing", "state", GPU, (Evidence("log", "xid"), Evidence("bus", "none"))),
        ("nic-port-down", "state", "mlx5_0/1", ()),
        ("bandwidth-low", "measurement", "gpu0-numa0", ()),
    ]
    for severity in ("critical", "warning", "info")
]
series = st.lists(
    st.tuples(st.lists(st.sampled_from(ONES), max_size=4, unique_by=id), st.sampled_from([1, 60, 5000, 90_000])),
    max_size=12,
)


def at_minute(minute: float, findings: Iterable[Finding], checks: dict[str, bool] | None = None) -> Report:
    return Report(
        node="a",
        taken_at=as_utc(NOW + 60 * minute),
        source="live",
        context="host",
        profile=None,
        verdict="ok",
        findings=tuple(findings),
        checks=checks or {"pcie-link-narrow": True},
    )


def reports_over(time: Sequence[tuple[Sequence[Finding], int]]) -> list[Report]:
    histories: Histories = {}
    reports, minute = [], 0.0
    for findings, seconds in time:
        minute += seconds / 60
        histories, report = settle(histories, at_minute(minute, findings))
        reports.append(report)
    return reports


def key(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.subject, finding.kind


@given(series)
def test_nothing_is_shown_that_was_never_seen(time: list[tuple[list[Finding], int]]) -> None:
    seen: list[Finding] = []
    for (findings, _), report in zip(time, reports_over(time), strict=True):
        seen += findings
        for one in report.findings:
            message = one.message.split("; came and went")[0]
            assert any(replace(one, message=message, since=None) == before for before in seen)


@given(series)
def test_an_event_stays_until_it_is_cleared(time: list[tuple[list[Finding], int]]) -> None:
    stands: dict[tuple[str, str, str], float] = {}
    now = NOW
    for (findings, seconds), report in zip(time, reports_over(time), strict=True):
        now += seconds
        at = from_utc(report.taken_at or "")
        stands = {one: last for one, last in stands.items() if at - last <= DAY}
        fresh = {key(one) for one in findings if one.kind == "event"}
        grave = {key(one) for one in findings if one.kind == "event" and one.severity != "info"}
        stands = {one: last for one, last in stands.items() if one not in fresh or one in grave}
        stands.update(dict.fromkeys(grave, at))
        cited = {line for one in report.findings if one.kind == "state" for line in one.evidence}
        events = {key(one) for one in report.findings if one.severity != "info" and one.kind == "event"}
        hidden = {one for one in stands if one[0] == "gpu-xid" and Evidence("log", "xid") in cited}
        assert events <= stands.keys()
        assert stands.keys() - hidden <= events


@given(series, st.randoms())
def test_the_order_of_findings_changes_nothing(time: list[tuple[list[Finding], int]], random: Random) -> None:
    mixed = [(random.sample(findings, len(findings)), seconds) for findings, seconds in time]
    assert reports_over(mixed) == reports_over(time)


@given(series)
def test_a_look_at_what_is_steady_shows_it(time: list[tuple[list[Finding], int]]) -> None:
    """A finding in the last two reports is shown, whatever the earlier reports had."""
    if len(time) < 2:
        return
    both = {key(one) for one in time[-1][0]} & {key(one) for one in time[-2][0]}
    last = reports_over(time)[-1]
    assert {one for one in both if one[2] != "event"} <= {key(one) for one in last.findings}
