"""Several slow flows with one cause: their common part, the state that explains them, and whole matrices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.accuracy import matrices
from bench.accuracy.matrices import SCENARIOS, Scenario
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.records import Flow, Record
from linkgauge.models.report import Finding, Report
from tests.support.bare_findings import bare
from tests.support.nodes.small_nodes import ROOT, copy, gpu_address, gpus_under_switches, peers, report_of, with_fields


def grave(report: Report) -> list[tuple[str, str, str]]:
    return [(one.code, one.subject, one.confidence) for one in report.findings if one.severity != "info"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_matrices(scenario: Scenario) -> None:
    records = matrices.records_of(scenario.node)
    topology = matrices.report_of(records, {}, 0).topology
    measured = scenario.measured(topology)
    assert all(matrices.is_right(matrices.report_of(records, measured, seed), scenario) for seed in (0, 1, 2))


def test_the_finding_of_a_link_that_several_flows_share() -> None:
    """Both GPUs below a switch are slow to and from the host and fast to each other. The cause is the uplink."""
    ends = [("gpu0", ROOT), (ROOT, "gpu0"), ("gpu1", ROOT), (ROOT, "gpu1")]
    records = [*gpus_under_switches(4), *(copy(one, 20.0) for one in ends), copy(("gpu0", "gpu1"), 54.0)]
    records += [copy(("gpu2", ROOT), 55.0), copy((ROOT, "gpu3"), 55.0)]
    (found,) = report_of(records).findings
    assert bare(found) == Finding(
        code="bandwidth-low",
        cost="slower",
        kind="measurement",
        severity="critical",
        confidence="likely",
        subject="0000:01:00.0",
        message="4 flows that have the link between 0000:00:01.0 and 0000:01:00.0 in common reach 20.0 GB/s where "
        "55.1 GB/s is expected; nothing over it was faster",
        expected=found.expected,
        observed=20e9,
        unit="bytes_per_second",
        basis="capability",
        expected_source=found.expected_source,
        cause="no state that was read explains it",
        limits=found.limits,
        impact=found.impact,
        explains=(
            "bandwidth-low:gpu0-pci0000:00",
            "bandwidth-low:pci0000:00-gpu0",
            "bandwidth-low:gpu1-pci0000:00",
            "bandwidth-low:pci0000:00-gpu1",
        ),
        location={"below_it": "gpu0, gpu1"},
        evidence=found.evidence,
        remedy=found.remedy,
    )
    assert found.limits == {"0000:00:01.0>0000:01:00.0": pytest.approx(63.015e9 * 20 / 55.1, rel=0.01)}


def test_what_slow_nvlinks_cost() -> None:
    """Two of 18 links carry nothing, and no state shows it: the rate is 16/18 of the rated rate."""
    scenario = next(one for one in SCENARIOS if one.name == "two bad NVLinks of eighteen")
    records = matrices.records_of(scenario.node)
    measured = scenario.measured(matrices.report_of(records, {}, 0).topology)
    (found,) = (one for one in matrices.report_of(records, measured, 1).findings if one.severity != "info")
    assert found.limits == {f"gpu3/nvlink{number}": pytest.approx(25e9 * 16 / 18, rel=0.02) for number in range(18)}
    slower = pytest.approx(18 / 16, rel=0.02)
    assert found.impact == {"all_reduce": slower, "alltoall": slower, "all_reduce@fabric": 1.0}


def test_two_causes_are_two_findings() -> None:
    slow = [(f"gpu{gpu}", end) for gpu in (0, 5) for end in (ROOT, "gpu2")]
    records = [*gpus_under_switches(8), *(copy(one, 20.0) for one in slow)]
    records += [copy((f"gpu{gpu}", end), 55.0) for gpu in (1, 4) for end in (ROOT, "gpu2")]
    assert sorted(grave(report_of(records))) == [
        ("bandwidth-low", gpu_address(0), "likely"),
        ("bandwidth-low", gpu_address(5), "likely"),
    ]


def test_indistinguishable_causes_are_possible() -> None:
    """For a single GPU below its switch, the cause is its own link or the link above the switch."""
    records = [*gpus_under_switches(1), copy(("gpu0", ROOT), 20.0), copy((ROOT, "gpu0"), 20.0)]
    (found,) = report_of(records).findings
    assert found.confidence == "possible"
    assert found.cause == (
        "no state that was read explains it; the link between 0000:00:01.0 and 0000:01:00.0 would explain it as well"
    )


def test_copies_that_turn_at_a_switch_go_under_its_access_control() -> None:
    healthy = [(0, 2), (2, 0), (1, 3), (3, 1)]
    records: list[Record] = [*gpus_under_switches(4), *peers(54, healthy), *peers(25, [(0, 1), (1, 0)])]
    assert grave(report_of(records)) == [("pcie-acs-redirect", "0000:01:00.0", "likely")]
    redirect = ("ReqRedir", "CmpltRedir")
    state = with_fields(records, "0000:02:00.0", acs=redirect)
    (found,) = (one for one in report_of(state).findings if one.severity != "info")
    assert found.code == "pcie-acs-redirect"
    assert found.explains == ("bandwidth-low:gpu0-gpu1", "bandwidth-low:gpu1-gpu0")


def test_copies_between_roots_are_the_processors() -> None:
    records = [*gpus_under_switches(4), *peers(54, [(0, 1), (1, 0)]), *peers(20, [(0, 2), (2, 0), (1, 3), (3, 1)])]
    records += [copy((f"gpu{gpu}", ROOT), 55.0) for gpu in range(4)]
    records += [copy((ROOT, f"gpu{gpu}"), 55.0) for gpu in range(4)]
    assert grave(report_of(records)) == [("pcie-peer-slow", ROOT, "likely")]


def test_two_limits_on_one_path_explain_it_together() -> None:
    """x8 at the GPU and x4 above the switch: the narrower link sets the rate, and there is no third finding."""
    records = with_fields(with_fields(gpus_under_switches(2), gpu_address(0), width=8), "0000:01:00.0", width=4)
    report = report_of([*records, copy(("gpu0", ROOT), 13.9)])
    explained = {one.subject: one.explains for one in report.findings}
    assert explained == {gpu_address(0): (), "0000:01:00.0": ("bandwidth-low:gpu0-pci0000:00",)}


def test_the_loss_beyond_known_limits_is_reported() -> None:
    report = report_of([*with_fields(gpus_under_switches(2), gpu_address(0), width=8), copy(("gpu0", ROOT), 10.0)])
    (low,) = (one for one in report.findings if one.code == "bandwidth-low")
    assert "what limits that are known leave is 27" in low.message


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_measurements_does_not_matter(chance: object) -> None:
    ends = [("gpu0", ROOT), (ROOT, "gpu0"), ("gpu1", ROOT), ("gpu2", ROOT), ("gpu0", "gpu1"), ("gpu2", "gpu3")]
    seen = [copy(one, 20.0 if "gpu0" in one else 55.0) for one in ends]
    expected = grave(report_of([*gpus_under_switches(4), *seen]))
    chance.shuffle(seen)  # type: ignore[attr-defined]
    assert grave(report_of([*gpus_under_switches(4), *seen])) == expected != []


def test_a_faster_measurement_takes_no_finding_to_another_place() -> None:
    records = gpus_under_switches(4)
    slow = [copy((f"gpu{gpu}", ROOT), 20.0) for gpu in (0, 1)]
    fast = [replace(slow[0], value=55e9), slow[1]]
    assert [one[1] for one in grave(report_of([*records, *slow]))] == ["0000:01:00.0"]
    assert [one[1] for one in grave(report_of([*records, *fast]))] == ["gpu1-pci0000:00"]


def test_a_slow_flow_without_a_path_is_its_own_subject() -> None:
    flow = Flow("copy", ("gpu0", "gpu1"), 1 << 28)
    others = [copy((f"gpu{a}", f"gpu{b}"), 50) for a, b in ((2, 3), (3, 2), (1, 0), (2, 1), (1, 2))]
    slow = replace(others[0], about=flow, value=20e9)
    gpus = [Gpu(key=f"gpu{number}", name="H100 PCIe") for number in range(4)]
    assert grave(report_of([*gpus, slow, *others], origin="dumps")) == [("bandwidth-low", "gpu0-gpu1", "likely")]


def test_a_slow_row_without_a_topology_is_one_gpu() -> None:
    rates = {(a, b): 20.0 if 3 in (a, b) else 50.0 for a in range(6) for b in range(6) if a != b}
    seen = [copy((f"gpu{a}", f"gpu{b}"), rate) for (a, b), rate in rates.items()]
    gpus = [Gpu(key=f"gpu{number}", name="H100 PCIe") for number in range(6)]
    assert grave(report_of([*gpus, *seen], origin="dumps")) == [("bandwidth-low", "gpu3", "likely")]
