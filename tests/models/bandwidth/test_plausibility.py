"""Rates above the rates of the links on their path: reported and not judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.records import Flow, Observation, Record
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.small_nodes import (
    ROOT,
    copy,
    gpu_address,
    gpus_under_switches,
    observation,
    report_of,
    snapshot_of,
)

PLAIN = gpus_under_switches(4)
TO_HOST = copy(("gpu0", ROOT), 110.0)


def invalid(records: list[Record]) -> list[str]:
    return [one.subject for one in report_of(records).findings if one.code == "measurement-invalid"]


def test_a_sum_of_both_directions() -> None:
    """The rate is in no level. It does not show that the node is healthy."""
    report = report_of([*PLAIN, TO_HOST])
    (found,) = report.findings
    assert bare(found) == Finding(
        code="measurement-invalid",
        cost="none",
        severity="info",
        confidence="likely",
        subject="gpu0-pci0000:00",
        message="copy gpu0-pci0000:00 reports 110.0 GB/s, but the links of its path carry at most 63.0 GB/s: "
        "not judged",
        expected=found.expected,
        observed=110e9,
        unit="bytes_per_second",
        basis="capability",
        expected_source=found.expected_source,
        cause="probably the sum of both directions; else links that are others than was read",
        evidence=(TO_HOST.evidence,),
        remedy=found.remedy,
    )
    assert report.levels == ()
    assert [one.value for one in report.observations] == [110e9]
    assert report_of([TO_HOST], origin="dumps").verdict == "unknown"


def test_an_implausible_rate_is_not_part_of_a_cohort() -> None:
    """Three of four copies show the sum of both directions. The fourth copy is the correct one."""
    others = [copy((f"gpu{gpu}", ROOT), 110.0) for gpu in range(1, 4)]
    report = report_of([*PLAIN, copy(("gpu0", ROOT), 55.0), *others])
    assert [(one.code, one.subject) for one in report.findings] == [("measurement-invalid", "gpu1-pci0000:00")]
    assert ", and 2 more numbers like it" in report.findings[0].message
    assert [level.ends for level in report.levels] == [("gpu0", ROOT)]


def test_another_number_of_the_same_flow_is_judged() -> None:
    report = report_of([*PLAIN, TO_HOST, copy(("gpu0", ROOT), 20.0)])
    assert sorted(one.code for one in report.findings) == ["bandwidth-low", "measurement-invalid"]


def test_memory_and_disks_that_answer_from_a_cache() -> None:
    h100 = Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3")
    (found,) = report_of([h100, observation(Flow("stream-copy", ("gpu0",)), "rate", 4.26e12)], origin="dumps").findings
    assert (found.code, found.expected, found.cause) == (
        "measurement-invalid",
        3.35e12,
        "probably bytes that came from a cache, or links that are others than was read",
    )


SWITCHED = [replace(one, name="NVIDIA H100 80GB HBM3") if isinstance(one, Gpu) else one for one in PLAIN]
PEER = copy(("gpu0", "gpu1"), 250.0)


def nvlinks(gpu: int, count: int) -> list[Record]:
    return [
        GpuLink(key=f"gpu{gpu}/nvlink{n}", gpu=f"gpu{gpu}", kind="nvlink", active=True, remote_kind="switch")
        for n in range(count)
    ]


@pytest.mark.parametrize(
    "records",
    [
        [*PLAIN, copy(("gpu0", ROOT), 64.0)],
        [*PLAIN, Node(key="node", virtual=True), TO_HOST],  # a hypervisor's tree
        # NVLinks that no source shows completely; GPUs of unknown products.
        [*(replace(one, nvlinks=None) if isinstance(one, Gpu) else one for one in SWITCHED), PEER],
        [*SWITCHED, *nvlinks(0, 5), *nvlinks(1, 5), PEER],
        [*(replace(one, name="Other") if isinstance(one, Gpu) else one for one in PLAIN), TO_HOST],
        # Reduced by the switches.
        [
            *SWITCHED,
            *nvlinks(0, 18),
            *nvlinks(1, 18),
            observation(Flow("all_reduce-nvls", ("gpu0", "gpu1")), "bus_bandwidth", 600e9),
        ],
        [Gpu(key="gpu0", name="NVIDIA GH200 480GB", address=gpu_address(0)), *PLAIN[:5], copy(("gpu0", ROOT), 400.0)],
    ],
)
def test_what_may_well_be(records: list[Record]) -> None:
    assert invalid(records) == []


def test_nvlinks_that_are_all_known() -> None:
    links = [*nvlinks(0, 18), *nvlinks(1, 18)]
    assert invalid([*SWITCHED, *links, copy(("gpu0", "gpu1"), 430.0)]) == []
    assert invalid([*SWITCHED, *links, copy(("gpu0", "gpu1"), 780.0)]) == ["gpu0-gpu1"]
    over_pcie = copy(("gpu0", "gpu1"), 110.0, via="pcie")
    assert invalid([*SWITCHED, *links, over_pcie]) == ["gpu0-gpu1"]


@given(st.floats(1e6, 1e12))
def test_a_number_is_judged_or_called_implausible(rate: float) -> None:
    copied = observation(Flow("copy", ("gpu0", ROOT), 1 << 28), "rate", rate)
    report = report_of([*PLAIN, copied])
    assert len(report.levels) + len(invalid([*PLAIN, copied])) == 1
    if rate <= 63e9:
        assert report.levels


def test_the_same_object_twice_is_one_number() -> None:
    twice: list[Observation] = [TO_HOST, TO_HOST]
    assert len(snapshot_of([*PLAIN, *twice]).observed[TO_HOST.about]) == 2
    assert invalid([*PLAIN, *twice]) == ["gpu0-pci0000:00"]


def test_a_disk_that_gave_zeros() -> None:
    """Only the run that read zeros is invalid. Another run of the same flow counts."""
    flow = Flow("read", ("nvme0n1", "host"))
    fast, true = observation(flow, "rate", 14e9), replace(observation(flow, "rate", 6e9), at=5.0)
    zeros = replace(observation(flow, "zeros", 0.25), unit="share")
    report = report_of([fast, zeros, true])
    (found,) = report.findings
    assert (found.code, found.severity, found.subject) == ("measurement-invalid", "info", "nvme0n1-host")
    assert found.message == (
        "read nvme0n1-host gave 14.0 GB/s, and 25% of the blocks were nothing but zeros: not judged"
    )
    assert found.evidence == (zeros.evidence, fast.evidence)
    assert [level.observed for level in report.levels] == [6e9]


def test_data_has_a_few_zeros() -> None:
    flow = Flow("read", ("nvme0n1", "host"))
    report = report_of([observation(flow, "rate", 6e9), replace(observation(flow, "zeros", 0.04), unit="share")])
    assert report.findings == ()
    assert [level.observed for level in report.levels] == [6e9]
