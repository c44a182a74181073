"""The driver of NVIDIA GPUs: it is bound, answers, and lists all GPUs that it is bound to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver
from linkgauge.models.facts.machine import Event, Numa, Setting
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import (
    BARE,
    DRIVER,
    NOW,
    address,
    board,
    findings,
    function,
    gpu,
    report_of,
    summaries,
    with_fields,
    without,
)

MISMATCH = Driver(key="nvidia", version="580.95.05", failure="Driver/library version mismatch")
BOUND = [function(number) for number in range(8)]
ITSELF = ("gpu-driver-failed", address(3), "critical", "likely")
INIT = Event(key="init", kind="gpu init failed", subject=address(3), text="RmInitAdapter failed! (0x62)", at=NOW)


def test_one_finding_for_a_driver_that_does_not_work() -> None:
    (found,) = findings([BARE, MISMATCH, *BOUND])
    assert bare(found) == Finding(
        code="gpu-driver-failed",
        cost="cannot run",
        severity="critical",
        subject="node",
        message="the nvidia driver is bound to the 8 GPUs and cannot be used: Driver/library version mismatch",
        expected="a driver that answers",
        observed="Driver/library version mismatch",
        cause="the library was updated and the module that is loaded was not, or the other way round",
        evidence=(Evidence("nvmlInit", "Driver/library version mismatch"),),
        remedy=found.remedy,
    )
    assert report_of([BARE, MISMATCH, *BOUND]).verdict == "failed"
    hung = findings(
        [BARE, Driver(key="nvidia", failure="no answer within 5 s", failure_reason=Reason.NO_ANSWER), function(0)]
    )
    assert [(one.subject, one.cause) for one in hung] == [
        ("node", "the driver hangs, most often on a GPU that does not answer it")
    ]


def test_a_driver_without_bound_gpus_is_one_finding() -> None:
    unbound = function(0, driver=None)
    expected = [("gpu-driver-failed", address(0), "critical", "certain")]
    assert summaries([BARE, unbound, Driver(key="nvidia", failure="Driver Not Loaded")]) == expected
    report = report_of(
        [
            BARE,
            unbound,
            NotChecked(what="Gpu", subject="node", reason=Reason.DRIVER, detail="no GPU is bound to the driver"),
        ]
    )
    assert ([one.subject for one in report.findings], report.verdict) == ([address(0)], "failed")


def test_one_gpu_that_does_not_answer() -> None:
    records = with_fields(board(), "gpu3", failure="no answer within 5 s", failure_reason=Reason.NO_ANSWER)
    (found,) = findings(records)
    assert (found.code, found.subject, found.severity, found.confidence) == (*ITSELF[:3], "certain")
    assert found.message == "GPU gpu3 cannot be used: no answer within 5 s"
    assert found.location == {"module_id": 4}
    assert summaries(with_fields(records, address(3), lost=True)) == [
        ("gpu-missing", address(3), "critical", "certain")
    ]


@pytest.mark.parametrize(
    ("failure", "first"),
    [
        ("GPU requires restart", "With NVSwitches, drain the node and reset all GPUs"),
        ("Unknown Error", "Read what the driver logged"),
    ],
)
def test_one_gpu_that_cannot_be_used_is_no_reason_to_load_the_driver(failure: str, first: str) -> None:
    (found,) = findings(with_fields(board(), "gpu3", failure=failure))
    assert (found.remedy or "").startswith(first)


def test_a_gpu_that_the_driver_holds_and_does_not_list() -> None:
    (found,) = findings(without(board(), "gpu3"))
    assert (found.code, found.subject, found.severity, found.confidence) == ITSELF
    assert found.message == "GPU 0000:13:00.0 is bound to the driver, which does not list it: 7 of 8 GPUs can be used"
    logged = findings([*without(board(), "gpu3"), INIT])[0]
    evidence = (*found.evidence, Evidence("kernel log", INIT.text or ""))
    assert (logged.confidence, logged.evidence) == ("certain", evidence)


@pytest.mark.parametrize(
    "records",
    [
        with_fields(without(board(), "gpu3"), "gpu5", address=None),
        [
            *without(board(), "gpu3"),
            NotChecked(what="Gpu", subject="gpu3", reason=Reason.PERMISSION, detail="Insufficient Permissions"),
        ],
        [BARE, *BOUND],
        [BARE, Driver(key="nvidia", version="580.95.05"), *BOUND],
        [*board(), function(9, physfn=address(3))],
        with_fields(board(), "gpu3", address="0000:0a:00.0"),
    ],
    ids=["one without address", "one refused", "nobody asked", "no count", "virtual function", "another address"],
)
def test_what_is_not_known_is_no_fault(records: list[Record]) -> None:
    assert [one for one in summaries(records) if one[2] == "critical"] == []


def test_a_container_is_given_what_it_is_given() -> None:
    records = [with_fields(board(), "node", container="docker")[0], replace(DRIVER, gpus=1), *BOUND, gpu(3)]
    (found,) = findings(records)
    assert (found.severity, found.subject) == ("info", "node")
    assert found.message == "this container was given 1 of 8 GPUs of the machine; the others were not judged"
    assert (found.remedy or "").startswith("Nothing")
    assert report_of(records).verdict == "ok"
    nothing = report_of([*records[:1], Driver(key="nvidia", gpus=0), *BOUND])
    assert (nothing.verdict, nothing.findings, len({one.subject for one in nothing.not_checked})) == ("unknown", (), 9)


def test_a_job_may_be_kept_from_gpus() -> None:
    report = report_of([BARE, replace(DRIVER, gpus=1), *BOUND, gpu(3)], context="job")
    assert ([one.severity for one in report.findings], report.verdict) == (["info"], "ok")


@pytest.mark.parametrize(
    ("allowed", "verdict"),
    [("0-15", "failed"), ("0,2-15", "unknown"), ("0-7", "unknown"), ("many", "failed"), (None, "failed")],
)
def test_a_process_bound_to_some_cpus_may_not_see_all_gpus(allowed: str | None, verdict: str) -> None:
    numas = [Numa(key=f"numa{node}", cpus=tuple(range(8 * node, 8 * node + 8)), memory=1 << 36) for node in range(2)]
    records = [*without(board(), "gpu3"), *numas, Setting(key="cpus_allowed", value=allowed)]
    assert report_of(records).verdict == verdict


def test_it_is_unknown_whether_it_is_a_container() -> None:
    report = report_of(with_fields(without(board(), "gpu3"), "node", container=None))
    assert (report.verdict, report.findings) == ("unknown", ())
    assert ("Gpu", address(3)) in {(one.what, one.subject) for one in report.not_checked}


def test_versions() -> None:
    differs = Driver(key="nvidia", version="580.95.05", library="570.124.06", gpus=1)
    assert summaries([BARE, differs, function(0), gpu(0)]) == [("driver-mismatch", "node", "warning", "certain")]
    assert summaries([BARE, Driver(key="nvidia", version="580.95.05", gpus=1), function(0), gpu(0)]) == []
