"""Xids that the catalog does not describe, requests for the whole node, and products that set a recovery action.

The log lines have the form of open-gpu-kernel-modules (NV_ERROR_LOG) and of NVIDIA's Xid catalog
(https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html).
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.machine import Event, Service
from linkgauge.models.facts.records import Record
from linkgauge.models.facts.recovery import logged_action, recovery_action, release_of
from linkgauge.probes.kernel_log.patterns import group_events
from tests.support.nodes.event_logs import NOW, findings, log, summaries
from tests.support.nodes.gpu_facts import NOW as WHOLE
from tests.support.nodes.gpu_facts import address, board, function
from tests.support.nodes.gpu_facts import findings as evaluated
from tests.support.texts import report_of

R580 = Driver(key="nvidia", version="580.95.05", gpus=8)


def line(number: int, code: int, text: str = "what it says") -> str:
    return f"NVRM: Xid (PCI:{address(number)[:-2]}): {code}, {text}"


def changed(number: int, to: str) -> str:
    return line(number, 154, f"GPU recovery action changed from 0x0 (None) to {to}")


@pytest.mark.parametrize(
    ("code", "text", "severity"),
    [
        (174, "an error of a new release", "warning"),
        (175, "GPU memory subsystem timeout (type 2) detected", "critical"),
        (176, "an error of a new release", "warning"),
        (122, "SPI PMU RPC read failed", "warning"),
        (125, "InfoROM file system error", "warning"),
        (58, "Edc", "warning"),
        (999, "something", "warning"),
        (13, "Graphics Exception", None),
        (141, "CUDA fast path", None),
    ],
)
def test_an_undescribed_xid_is_a_warning_with_its_line(code: int, text: str, severity: str | None) -> None:
    found = findings(function(3), *log(line(3, code, text)))
    assert [(one.code, one.subject, one.severity) for one in found] == (
        [("gpu-xid", address(3), severity)] if severity else []
    )
    assert [one.text for finding in found for one in finding.evidence] == ([line(3, code, text)] if severity else [])
    loaded = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release Build"
    assert [one.severity for one in findings(function(3), *log(line(3, code, text), loaded))] == ["info"] * len(found)


@pytest.mark.parametrize(
    ("number", "release", "action"),
    [
        (0, 570, "none"),
        (4, 570, "drain and reset"),
        (5, 580, "bus reset"),
        (5, 595, "recover IMEX domain"),
        (5, 615, "recover IMEX domain"),
        (5, None, "recover IMEX domain"),
        (6, 615, "bus reset"),
        (7, 615, "system reboot"),
        (8, 615, None),
    ],
)
def test_the_number_of_a_recovery_action_depends_on_the_release(
    number: int, release: int | None, action: str | None
) -> None:
    assert recovery_action(number, release) == action


def test_the_words_of_the_log_line_come_before_its_number() -> None:
    assert logged_action(changed(3, "0x2 (Node Reboot Required)"), 2, 580) == "node reboot"
    assert logged_action(changed(3, "0x5 (GPU Bus Reset Required)"), 5, 615) == "bus reset"
    assert logged_action(changed(3, "0x5 (Recover IMEX Domain)"), 5, 580) == "recover IMEX domain"
    assert logged_action(changed(3, "0x5 (b)"), 5, 580) == "bus reset"
    assert logged_action(changed(3, "0x9 (b)"), 9, 580) is None
    assert [release_of(one) for one in ("580.95.05", "1000.1", "cuda 13", None)] == [580, 1000, None, None]


def whole_node(action: str) -> list[Record]:
    return [replace(one, recovery=action) if isinstance(one, Gpu) else one for one in board()]


@pytest.mark.parametrize(
    ("action", "severity"),
    [("node reboot", "critical"), ("system reboot", "critical"), ("recover IMEX domain", "warning")],
)
def test_a_request_for_the_whole_node_is_one_finding_that_names_the_gpu(action: str, severity: str) -> None:
    (alone,) = evaluated(whole_node(action))
    assert (alone.code, alone.subject, alone.severity, alone.observed) == ("gpu-xid", "node", severity, action)
    assert alone.message == f"the GPU driver asks for this node: {action}; the log names no current Xid"
    found = evaluated([*whole_node(action), *log(line(3, 120), last=WHOLE - 60)])
    assert [(one.code, one.subject, one.severity) for one in found] == [
        ("gpu-xid", address(3), "critical"),
        ("gpu-xid", "node", severity),
    ]
    assert found[1].message == f"the GPU driver asks for this node: {action} after Xid 120 of {address(3)}"


def test_a_request_for_the_whole_node_in_a_log_is_one_finding() -> None:
    lines = [line(3, 120), *(changed(number, "0x2 (Node Reboot Required)") for number in range(8))]
    found = findings(*(function(number) for number in range(8)), *log(*lines))
    assert [(one.code, one.subject, one.severity) for one in found] == [
        ("gpu-xid", address(3), "critical"),
        ("gpu-xid", "node", "critical"),
    ]
    assert f"the driver asks for a restart of the node, after Xid 120 of {address(3)}" in found[1].message


def test_a_request_for_one_gpu_stays_with_it() -> None:
    found = summaries(*(function(number) for number in range(8)), *log(changed(3, "0x1 (GPU Reset Required)")))
    assert found == [("gpu-xid", address(3), "critical")]


T4 = Gpu(key="gpu3", name="Tesla T4", address=address(3), recovery="none")
H100 = replace(T4, name="NVIDIA H100 80GB HBM3")


@pytest.mark.parametrize("code", [48, 62, 64, 79])
def test_none_excuses_only_where_the_driver_sets_the_action(code: int) -> None:
    """The catalog's column "Xid 154 linkage" is about A100, H100, B100 and GB200, from release 565 on."""

    def severities(gpu: Gpu, driver: Driver) -> list[str]:
        return [one.severity for one in findings(gpu, driver, *log(line(3, code))) if one.code == "gpu-xid"]

    assert severities(H100, R580) == ["info"]
    assert severities(H100, replace(R580, version="560.35.03")) == ["critical"]
    for name in ("Tesla T4", "Quadro RTX 6000", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 4090", "Tesla V100-SXM2-16GB"):
        assert severities(replace(T4, name=name), R580) == ["critical"], name


def test_later_releases_set_the_action_with_more_xids() -> None:
    def severity(code: int, release: str) -> list[str]:
        return [one.severity for one in findings(H100, replace(R580, version=release), *log(line(3, code)))]

    assert (severity(143, "570.10"), severity(143, "575.51.03")) == (["critical"], ["info"])
    assert severity(119, "615.71.01") == ["critical"]  # no release sets one


def test_a_remedy_with_a_reset_begins_with_the_release_of_the_driver() -> None:
    """nvidia-smi --gpu-reset: "there can't be any applications using these devices"; the service has them open."""
    release = "Let the linkgauge service close the GPU driver: sudo linkgauge release."
    service = Service(key="linkgauge", running=True)
    for fields in ({"remap_pending": True}, {"recovery": "GPU reset"}, {"ecc_uncorrected": 9}):
        (without,) = evaluated(board(**fields))
        (stopped,) = evaluated([*board(**fields), replace(service, running=False)])
        (running,) = evaluated([*board(**fields), service])
        assert stopped == without
        assert running == replace(without, remedy=f"{release} {without.remedy}", steps=(release, *without.steps))
    others: tuple[dict[str, Any], ...] = ({"recovery": "node reboot"}, {"clock_reasons": ("hardware power brake",)})
    for other in others:
        assert evaluated([*board(**other), service]) == evaluated(board(**other))


FATAL = "RLW_REMAP Fatal XC0 i0 Link 04 (0x00000082 0x00000004 0x0 0x0 0x0 0x0)"
DOWN = "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x002001c6 0x00000000 0x0 0x0 0x0 0x0)"


def rack(gap: float, down: int = 0) -> list[Record]:
    lines = [(NOW - 600, line(down, 149, DOWN)), *((NOW - 600 + gap, line(number, 145, FATAL)) for number in (1, 2))]
    return [*(function(number) for number in range(3)), *group_events(lines, "log")]


def test_xid_145_after_the_149_of_another_gpu_is_its_by_product() -> None:
    """The catalog's CHECK_NVLINK_FAILURE_FLOW: ignore it if a link of the partition went down 30 s before."""
    found = findings(*rack(20))
    assert [(one.subject, one.severity) for one in found] == [
        (address(0), "critical"),
        (address(1), "info"),
        (address(2), "info"),
    ]
    assert found[1].message.endswith(f"(a by-product of Xid 149 of {address(0)})")
    alone: list[Record] = [one for one in rack(20) if not (isinstance(one, Event) and one.code == 149)]
    for late in (rack(40), rack(-5), alone):
        assert [one.severity for one in findings(*late) if one.subject != address(0)] == ["critical"] * 2


def test_the_gpu_with_both_xids_is_no_bystander() -> None:
    (own, other) = findings(*rack(20, down=1))
    assert (own.subject, own.severity, own.observed) == (address(1), "critical", 145)
    assert own.message.endswith("; also Xid 149")
    assert (other.subject, other.severity) == (address(2), "info")


@pytest.mark.parametrize(("code", "shown"), [(8, True), (13, True), (31, True), (43, True), (154, False), (14, False)])
def test_the_xid_of_a_program_in_a_pasted_log_is_named(code: int, shown: bool) -> None:
    report = report_of(f"{line(3, code)}\n")
    assert [(one.code, one.severity, one.observed) for one in report.findings] == [("gpu-xid", "info", code)] * shown
    assert report.verdict == "ok"


def test_the_xid_of_a_program_does_not_hide_another() -> None:
    report = report_of(f"{line(3, 13)}\n{line(3, 79)}\n{line(3, 43)}\n")
    assert [(one.code, one.severity) for one in report.findings] == [("gpu-xid", "critical")]
