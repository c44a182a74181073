"""GPUs that are gone: one finding per GPU from all sources, and machines with a part of a board."""

from __future__ import annotations

from typing import Any

import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Event, Node
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Machine, Site
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import (
    BARE,
    DRIVER,
    HERE,
    NOW,
    address,
    board,
    findings,
    function,
    gpu,
    report_of,
    summaries,
    switches,
    with_fields,
    without,
)

NODE = ("gpu-missing", "node", "critical", "certain")
ITSELF = ("gpu-missing", address(3), "critical", "certain")
LOST = Gpu(key="gpu3", address=address(3), failure="GPU is lost")
XID_79 = Event(key="xid 79", kind="xid", code=79, subject=address(3), text="GPU has fallen off the bus.", at=NOW - 60)


def unlisted() -> list[Record]:
    """A board whose GPU 3 is neither on the bus nor known to the driver."""
    return [*without(board(), address(3), "gpu3")]


def test_a_healthy_board() -> None:
    report = report_of(board())
    assert report.findings == ()
    assert report.checks["gpu-missing"] is True
    assert report.verdict == "ok"


def test_the_board_shows_how_many_there_are_and_where_the_gap_is() -> None:
    (found,) = findings(unlisted())
    listed = ", ".join(address(number) for number in range(8) if number != 3)
    assert bare(found) == Finding(
        code="gpu-missing",
        cost="cannot run",
        severity="critical",
        subject="node",
        message="7 of the 8 GPUs of HGX H100 or H200 are there; no answer from module 4",
        expected=8,
        observed=7,
        unit="gpus",
        basis="profile",
        expected_source="NVIDIA Fabric Manager User Guide, GPU baseboard topologies; pci.ids",
        cause="a GPU that is not on the bus at all: power, seating, or taken out",
        location={"module_id": 4},
        evidence=(Evidence("PCI functions", listed),),
        remedy=found.remedy,
    )


@pytest.mark.parametrize(
    ("device", "count", "gpus", "expected"),
    [
        (0x1AF1, 6, 8, []),
        (0x1AF1, 6, 7, [NODE]),
        (0x1AC2, 12, 16, []),
        (0x1AC2, 12, 15, [NODE]),
        (0x22A3, 3, 8, []),
        (0x22A3, 3, 7, [NODE]),
        (0xFFFF, 4, 7, []),
        (0x22A3, 0, 4, []),
    ],
)
def test_boards(device: int, count: int, gpus: int, expected: list[tuple[str, ...]]) -> None:
    records = [BARE, *(function(number) for number in range(gpus)), *switches(count, device)]
    assert [one for one in summaries(records) if one[0] == "gpu-missing"] == expected


@pytest.mark.parametrize("node", [{"virtual": True}, {"virtual": None}, {"container": "docker"}])
def test_a_part_of_a_board_is_no_fault(node: dict[str, Any]) -> None:
    assert "gpu-missing" not in {one[0] for one in summaries(with_fields(unlisted(), "node", **node))}


def test_dumps_show_what_they_show() -> None:
    assert summaries(unlisted(), origin="dumps") == []
    assert summaries([function(0), XID_79], origin="dumps") == [("gpu-xid", address(3), "critical", "certain")]


def test_a_gap_in_the_modules_where_no_switch_is_seen() -> None:
    """The NVSwitches of HGX B200 are not PCI functions."""
    blind = [one for one in unlisted() if one not in switches()]
    assert [(one[0], one[1]) for one in summaries(blind)] == [("gpu-missing", "node")]
    assert findings(blind)[0].location == {"module_id": 4}
    last = [one for one in without(board(), address(7), "gpu7") if one not in switches()]
    assert summaries(last) == []
    lent = with_fields(without(board(), "gpu3"), address(3), driver="vfio-pci")
    assert [one[0] for one in summaries([one for one in lent if one not in switches()])] == ["gpu-driver-failed"]
    four = [one for one in without(board(5), address(1), "gpu1") if one not in switches()]
    assert summaries(four) == []


def test_the_driver_lost_it() -> None:
    (found,) = findings([*without(board(), "gpu3"), LOST])
    assert (found.code, found.subject, found.severity, found.observed) == (*ITSELF[:3], "GPU is lost")
    assert found.message == "GPU gpu3 is lost: its driver gets no answer from it (GPU is lost)"
    assert found.evidence == (Evidence("gpu3 failure", "GPU is lost"),)


@pytest.mark.parametrize(
    "records",
    [
        [*with_fields(without(board(), "gpu3"), address(3), lost=True), LOST],
        [*with_fields(without(board(), "gpu3"), address(3), lost=True), Gpu(key="gpu3", failure="GPU is lost")],
        [*without(board(), "gpu3", address(3)), LOST],
        [*without(board(), "gpu3", address(3)), LOST, XID_79],
        [*unlisted(), XID_79],
    ],
    ids=["bus and driver", "driver knows no address", "driver alone", "driver and log", "log alone"],
)
def test_one_gpu_one_finding(records: list[Record]) -> None:
    assert [one for one in summaries(records) if one[0] == "gpu-missing"] == [ITSELF]


def test_two_of_which_one_is_known_by_name() -> None:
    records = [*without(board(), "gpu3", address(3), "gpu5", address(5)), XID_79]
    assert sorted(one for one in summaries(records) if one[0] == "gpu-missing") == [ITSELF, NODE]


def test_the_log_alone() -> None:
    found = next(one for one in findings([*unlisted(), XID_79]) if one.code == "gpu-missing")
    assert found.message == f"the GPU at {address(3)} fell off the bus (Xid 79), and is not listed any more"
    assert (found.since, found.evidence) == ("2033-05-18T03:32:20Z", (Evidence("kernel log", XID_79.text or ""),))


def test_a_log_without_read_permission_is_not_a_gap() -> None:
    hidden = NotChecked(what="Event", subject="node", reason=Reason.PERMISSION, detail="Operation not permitted")
    report = report_of([*board(), hidden])
    assert (report.verdict, report.checks["gpu-missing"]) == ("ok", True)


def test_a_driver_that_could_not_be_read_is_unknown() -> None:
    """Without our library or permission the verdict is never ok."""
    records = [BARE, *(function(number) for number in range(8)), *switches()]
    report = report_of(
        [
            *records,
            NotChecked(what="Gpu", subject="node", reason=Reason.NOT_INSTALLED, detail="pynvml is not installed"),
        ]
    )
    assert (report.verdict, report.findings) == ("unknown", ())
    assert {report.checks[code] for code in ("gpu-missing", "gpu-driver-failed")} == {False}
    one = report_of(
        [
            *without(board(), "gpu3"),
            NotChecked(what="Gpu", subject="gpu3", reason=Reason.PERMISSION, detail="no permission"),
        ]
    )
    assert (one.verdict, one.findings) == ("unknown", ())


def test_the_machine_type_comes_before_the_board() -> None:
    site = Site(machine=(Machine(name="ours", source="the order", gpu="*H100*", gpus=7),))
    assert summaries(unlisted(), site=site) == []


def test_no_nvidia_hardware_not_a_word() -> None:
    report = report_of([Node(key="node", virtual=False, container=""), function(0, vendor=0x1002, driver="amdgpu")])
    assert not [code for code in report.checks if code.startswith("gpu") and code != "gpu-missing"]
    assert report.findings == ()


def test_a_finding_has_the_evidence_of_its_fact() -> None:
    records = [BARE, DRIVER, function(0), gpu(0, failure="GPU is lost", cites={"failure": HERE})]
    assert findings(records)[0].evidence == (HERE,)
