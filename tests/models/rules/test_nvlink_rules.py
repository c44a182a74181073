"""NVLinks that are down, missing or have errors, and unusual healthy machines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import with_fields
from tests.support.nodes.nvlink_machines import (
    A100,
    A100_PCIE,
    B200,
    BARE,
    GB200,
    GH200,
    GUEST,
    H100,
    H100_NVL,
    H200,
    HERE,
    MANAGER,
    MINE,
    NOW,
    RTX_3090,
    T4,
    V100,
    address,
    cards,
    counter,
    cut,
    findings,
    function,
    links_of,
    machine,
    nvlink,
    pairs,
    report_of,
    service,
    summaries,
    switch,
)

HEALTHY = {
    "8 H100": machine(H100),
    "8 H100 in a container": machine(H100, hidden=True),
    "8 H100 with peers": [*machine(H100), *pairs(8)],
    "8 A100": [*machine(A100), service(MANAGER, True, "1"), Driver(key="nvidia", version="1")],
    "8 B200 without a manager that systemd knows": [*machine(B200), service(MANAGER, False)],
    "4 GB200": [*machine(GB200, 4, fabric_cluster="c1", fabric_faults=()), service(MANAGER, False)],
    "one GH200": machine(GH200, 1, nvlinks=0, fabric_state="not supported", fabric_status=None),
    "one H100 of eight": machine(H100, 1, GUEST, hidden=True, nvlinks=0, fabric_state="not supported"),
    "4 A100 in pairs": [*cards(A100_PCIE, [12, 12, 12, 12]), *pairs(4, nvlink="not supported")],
    "2 A100 without a bridge": cards(A100_PCIE, [0, 0]),
    "a bridge on two of four": cards(H100_NVL, [12, 12, 0, 0]),
    "2 RTX without peers": [*cards(RTX_3090, [0, 0]), *pairs(2, read="chipset not supported", nvlink="not supported")],
    "MIG": machine(H100, mig=True, nvlinks=0, fabric_state="not started"),
    "T4 in a guest": [*cards(T4, [0, 0], GUEST), *pairs(2, read="chipset not supported", path="PHB")],
    "cards that no catalog knows": cards(0x1234, [0, 0, 2, 2]),
    "three of them, of which two have a bridge": cards(0x1234, [2, 2, 0]),
    "sockets": [*cards(T4, [0, 0]), *pairs(2, read="topology not supported", nvlink="not supported")],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_machines_have_no_finding(name: str) -> None:
    assert summaries(HEALTHY[name]) == []


def test_hosts_without_the_service_have_only_information() -> None:
    """The manager may run in a container of its own, and an A100's driver says nothing of its fabric."""
    assert summaries([*machine(A100), service(MANAGER, False)]) == [("fabric-manager-down", MANAGER, "info")]


def test_one_link_of_eighteen() -> None:
    (finding,) = findings(cut(machine(H100), 3, 7))
    assert finding.evidence == (HERE, HERE)
    assert finding.expected_source is not None
    assert finding.expected_source.startswith("H100 SXM5 80GB has 18 NVLinks (")
    assert replace(bare(finding), evidence=(), expected_source=None, remedy=None, impact={}) == Finding(
        code="nvlink-inactive",
        cost="slower",
        severity="critical",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3 has 1 of 18 NVLinks inactive: link 7; 25.0 GB/s of 450.0 GB/s each way are lost",
        expected=18,
        observed=17,
        unit="links",
        basis="capability",
        cause="the link did not train, or was shut down after errors: the GPU, the board, or the other end",
        limits={"gpu3/nvlink7": 0.0},
    )
    slower = pytest.approx(18 / 17, abs=1e-3)
    assert finding.impact == {"all_reduce": slower, "alltoall": slower}


def test_a_gpu_that_lost_all_its_links_is_one_finding() -> None:
    """The unfinished fabric registration is a consequence, not a second finding."""
    dark = with_fields(cut(machine(B200), 4, *range(18)), "gpu4", fabric_state="in progress", fabric_status=None)
    (finding,) = findings(dark)
    assert (finding.code, finding.severity, finding.subject, finding.observed) == (
        "nvlink-inactive",
        "critical",
        address(4),
        0,
    )
    assert finding.explains == (f"nvlink-fabric-incomplete:{address(4)}",)
    assert finding.cause is not None
    assert finding.cause.startswith("it is cut off from its switches")


def test_a_switch_that_all_gpus_lost() -> None:
    records = machine(H100, 4)
    for gpu in range(4):
        records = cut(records, gpu, 2, 6, 10, 14)
    found = findings(records)
    assert [one.observed for one in found] == [14, 14, 14, 14]
    assert found[0].cause == (
        f"all its links to NVSwitch {switch(2)} are gone, as are those of gpu1, gpu2, gpu3: the switch itself"
    )
    assert findings(cut(machine(H100), 0, 2, 6, 10, 14))[0].cause == f"all its links to NVSwitch {switch(2)} are gone"


def test_ports_that_a_card_never_uses_are_not_named() -> None:
    """An H100 NVL shows 18 links; 12 of them go to its bridges."""
    records = cards(H100_NVL, [12, 10])
    used = [number for number in range(18) if number % 6 < 4]
    links = [nvlink(gpu, n, active=n in used and (gpu, n) not in {(1, 0), (1, 1)}) for gpu in (0, 1) for n in range(18)]
    (finding,) = findings([*records, *links])
    assert (finding.severity, finding.expected, finding.observed) == ("critical", 12, 10)
    assert "2 of 12 NVLinks inactive: links 0, 1;" in finding.message


@pytest.mark.parametrize(
    ("records", "severity", "subjects"),
    [
        (cards(A100_PCIE, [12, 12, 8, 12]), "critical", [2]),
        (cards(A100_PCIE, [8, 8, 0, 0]), "warning", [0, 1]),  # two bridges of three, perhaps on purpose
        (cards(0x1234, [4, 4, 4, 3]), "warning", [3]),
        (cards(V100, [4, 4, 5, 5], GUEST), "info", [0, 1, 2, 3]),  # half a board: the other half is another guest's
        (cards(V100, [2, 2], GUEST), "info", [0, 1]),
        (cards(V100, [4, 4, 5, 5]), "critical", [0, 1, 2, 3]),
        (cards(V100, [0, 0], GUEST), "warning", [0, 1]),
        (machine(A100, 2, GUEST, nvlinks=10), "warning", [0, 1]),  # its switches are there
        (machine(H100, 4, GUEST, hidden=True, nvlinks=17), "warning", [0, 1, 2, 3]),
        (cards(V100, [6, 6, 6, 4], GUEST), "critical", [3]),
        (cards(V100, [4]), "critical", [0]),
        (machine(H200, 8, GUEST, nvlinks=17), "critical", list(range(8))),
        (machine(H100, hidden=True, nvlinks=0), "critical", list(range(8))),
    ],
)
def test_fewer_links_than_there_should_be(records: list[Record], severity: str, subjects: list[int]) -> None:
    expected = [("nvlink-inactive", address(gpu), severity) for gpu in subjects]
    assert summaries(records) == expected


def test_links_that_could_not_be_counted_are_never_ok() -> None:
    refused = NotChecked(what="Gpu.nvlinks", subject="gpu3", reason=Reason.LOST, detail="NVML: Unknown Error")
    report = report_of([*with_fields(machine(H100), "gpu3", nvlinks=None), refused])
    assert report.checks["nvlink-inactive"] is False
    assert report.verdict == "unknown"
    assert [one for one in report.findings if one.code in MINE] == []
    other = report_of([*cards(T4, [0, 0]), replace(refused, subject="gpu1")])
    assert "nvlink-inactive" not in other.checks  # a T4 has none


@given(device=st.sampled_from([A100, H100, H200, V100, B200, GB200]), lost=st.integers(0, 17), gpu=st.integers(0, 3))
@pytest.mark.slow
def test_a_further_link_lost_never_makes_it_better(device: int, lost: int, gpu: int) -> None:
    grave = {None: 0, "info": 1, "warning": 2, "critical": 3}
    total = links_of(device)
    lost = min(lost, total - 1)

    def severity(count: int) -> int:
        found = findings(cut(machine(device, 4), gpu, *range(count)))
        assert {one.subject for one in found} <= {address(gpu)}
        return max((grave[one.severity] for one in found), default=0)

    assert severity(lost) <= severity(lost + 1)
    assert severity(lost + 1) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["nvlinks", "fabric_state", "fabric_status", "fabric_faults", "name", "address", "mig"]),
            st.integers(0, 7),
        ),
        max_size=6,
    )
)
def test_unknown_fields_give_no_finding(unsaid: list[tuple[str, int]]) -> None:
    records = [*machine(H100), *pairs(8)]
    for field, gpu in unsaid:
        records = with_fields(records, f"gpu{gpu}", **{field: None})
    assert summaries(records) == []


def test_recoveries_that_go_on() -> None:
    past = [counter("gpu3", "nvlink_recovery", 2, NOW - 60), counter("gpu3/nvlink4", "nvlink_recovery", 2, NOW - 60)]
    now = [
        counter("gpu3", "nvlink_recovery", 5),
        counter("gpu3/nvlink4", "nvlink_recovery", 2),
        counter("gpu3/nvlink7", "nvlink_recovery", 3),
        counter("gpu2", "nvlink_recovery", 0),
    ]
    (finding,) = findings([*machine(H100), *now], past)
    assert replace(bare(finding), remedy=None) == Finding(
        code="nvlink-errors",
        severity="warning",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3: 3 link recoveries in 60 s on link 7",
        observed=3,
        unit="count",
        cause="the signal of these links: the seating of the GPU, a bridge or cable, or the other end",
        evidence=(Evidence("nvml", "2"), Evidence("nvml", "5")),
    )
    assert summaries([*machine(H100), *past]) == []  # two in a day


@pytest.mark.parametrize(
    ("quantity", "value", "before", "found"),
    [
        ("nvlink_replay", 5, 5, False),
        ("nvlink_replay", 3, 5, False),  # counted anew since a reset
        ("nvlink_replay", 6, 5, False),
        ("nvlink_replay", 7, 5, True),
        ("nvlink_crc", 500, 0, False),  # 8 a second
        ("nvlink_crc", 60_000, 0, True),
        ("nvlink_symbol_errors", 2, 0, True),
        ("nvlink_recovery", 7, None, False),  # since boot, a day ago
        ("nvlink_recovery", 24, None, False),
        ("nvlink_recovery", 25, None, True),
        ("nvlink_recovery_failed", 7, None, False),
        ("nvlink_recovery_failed", 24, None, True),
        ("nvlink_crc", 1e5, None, False),
        ("nvlink_crc", 1e6, None, "info"),  # 12 a second cost no bandwidth
        ("nvlink_crc", 1e7, None, True),
        ("nvlink_recovery", 0, None, False),
    ],
)
def test_when_counters_are_too_high(quantity: str, value: float, before: float | None, found: bool | str) -> None:
    past = [] if before is None else [counter("gpu0", quantity, before, NOW - 60)]
    expected = [("nvlink-errors", address(0), "warning" if found is True else found)] if found else []
    assert summaries([*machine(B200), counter("gpu0", quantity, value)], past=past) == expected


def test_bit_errors_that_are_left_behind_error_correction() -> None:
    good = [counter("gpu0/nvlink3", "nvlink_effective_ber", 1.5e-254), counter("gpu0/nvlink3", "nvlink_raw_ber", 1e-7)]
    assert summaries([*machine(B200), *good]) == []
    (finding,) = findings([*machine(B200), *good, counter("gpu0/nvlink5", "nvlink_effective_ber", 2e-12)])
    assert finding.message == "GPU gpu0: an effective bit error rate of 2.0e-12 on link 5, above 1e-12"
    report = report_of(machine(B200))
    assert "nvlink-errors" not in report.checks  # no source counted them
    unsaid = NotChecked(what="Gpu.nvlink_errors", subject="gpu3", reason=Reason.LOST, detail="Unknown Error")
    assert report_of([*machine(B200), *good, unsaid]).checks["nvlink-errors"] is False


def test_a_driver_that_was_not_read_is_a_gap() -> None:
    def gaps(*records: Record) -> list[str]:
        return [one.what for one in report_of([BARE, *records]).not_checked]

    assert gaps(function(0, H100)) == ["Gpu"]
    assert (
        gaps(function(0, H100), Driver(key="nvidia", failure="no answer within 5 s", failure_reason=Reason.NO_ANSWER))
        == []
    )
    assert gaps(function(0, H100), Gpu(key="gpu0", address=address(0))) == []
    assert gaps(replace(function(0, H100), driver="vfio-pci")) == []
    refused = NotChecked(what="Gpu", subject="node", reason=Reason.NOT_INSTALLED, detail="pynvml is not installed")
    assert gaps(function(0, H100), refused) == ["Gpu"]
