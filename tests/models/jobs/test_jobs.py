"""Reports of synthetic jobs: which link, which rank, or not decidable."""

from __future__ import annotations

import numpy as np
import pytest

from bench.accuracy.jobs.__main__ import report_of
from bench.accuracy.jobs.cluster import layout, table_of_ranks
from bench.accuracy.jobs.explanations import places_of
from bench.accuracy.jobs.simulate import Fault, log_of, machines, simulate
from linkgauge.models.jobs.evaluate import evaluate_job
from linkgauge.models.jobs.placement import read_rows
from linkgauge.models.report import Report

NOISES = (0.02, 0.1)
NIC = Fault("nic", "node006/nic4", 2)
RAIL = Fault("rail", "rail3", 2)
LEAF = Fault("leaf", "leaf1", 2)
NVLINK = Fault("nvlink", "node003/nvlink", 2)
THROTTLED = Fault("throttled", "node002", 1.6, (17,))
INPUT = Fault("input", "node005", 1.6, tuple(range(40, 48)))
SHARDED, DATA, EXPERT, PIPELINE = "tensor+sharded", "tensor+data", "expert+data", "tensor+pipeline+data"


def found(name: str, nodes: int, *faults: Fault, noise: float = 0.02, seed: int = 7) -> list[tuple[str, str, str]]:
    findings = report_of(layout(name, nodes), faults, noise, np.random.default_rng(seed)).findings
    return [(one.code, one.subject, one.confidence) for one in findings]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("name", "nodes", "fault", "expected"),
    [
        (SHARDED, 16, NIC, [("bandwidth-low", "node006/nic4", "likely")]),
        (SHARDED, 16, RAIL, [("bandwidth-low", "rail3", "likely")]),
        (SHARDED, 16, LEAF, [("bandwidth-low", "leaf1", "likely")]),
        (SHARDED, 16, NVLINK, [("bandwidth-low", "node003/nvlink", "likely")]),
        (SHARDED, 8, THROTTLED, [("node-slow", "node002", "likely")]),
        (SHARDED, 8, INPUT, [("node-slow", "node005", "likely")]),
        (PIPELINE, 8, THROTTLED, [("node-slow", "node002", "likely")]),
        (EXPERT, 8, THROTTLED, [("node-slow", "node002", "likely")]),
        (DATA, 8, THROTTLED, [("node-slow", "node002", "likely")]),
        (DATA, 8, INPUT, [("node-slow", "node005", "likely")]),
        # All nodes are in the same groups: their NICs and their rail cannot be told apart.
        (DATA, 8, NIC, [("bandwidth-low", "dp (dp4)", "possible")]),
        (DATA, 8, RAIL, [("bandwidth-low", "dp (dp3)", "possible")]),
        # Stages of one pipeline wait for each other; which of them is slow shows no collective.
        (PIPELINE, 8, INPUT, [("node-slow", "dp0", "possible")]),
    ],
)
def test_one_fault(name: str, nodes: int, fault: Fault, expected: list[tuple[str, str, str]], noise: float) -> None:
    result = found(name, nodes, fault, noise=noise)
    if expected[0][2] == "possible":  # which of the equal communicators is named depends on the noise
        result = [(code, expected[0][1], sure) for code, _, sure in result]
    assert result == expected


@pytest.mark.parametrize("name", [SHARDED, DATA, EXPERT, PIPELINE, "data"])
@pytest.mark.parametrize("noise", NOISES)
def test_a_healthy_job_has_no_finding(name: str, noise: float) -> None:
    assert found(name, 8, noise=noise) == []


def test_two_faults() -> None:
    assert found(SHARDED, 16, NIC, THROTTLED) == [
        ("bandwidth-low", "node006/nic4", "likely"),
        ("node-slow", "node002", "likely"),
    ]
    assert found(SHARDED, 16, RAIL, NVLINK) == [
        ("bandwidth-low", "node003/nvlink", "likely"),
        ("bandwidth-low", "rail3", "likely"),
    ]
    assert found(SHARDED, 64, Fault("rail", "rail3", 2.6), Fault("leaf", "leaf1", 1.6)) == [
        ("bandwidth-low", "leaf1", "likely"),
        ("bandwidth-low", "rail3", "likely"),
    ]


@pytest.mark.parametrize("noise", NOISES)
def test_a_rank_that_waits_for_a_slow_link_and_for_a_late_node_is_not_the_cause(noise: float) -> None:
    """GPU 7 of node000 is the last in its node because of the NIC, and among nodes because its pipeline is late."""
    faults = [Fault("nic", "node001/nic7", 2.4), Fault("input", "node004", 1.7, tuple(range(32, 40)))]
    expected = ["bandwidth-low", "node-slow"]
    findings = report_of(layout(PIPELINE, 8), faults, noise, np.random.default_rng(7)).findings
    assert [(one.code, one.confidence) for one in findings] == [(code, "possible") for code in expected]
    assert findings[1].candidates == ("node000", "node004")


@pytest.mark.parametrize("noise", NOISES)
def test_a_late_rank_in_a_pipeline_is_named_beside_a_slow_link(noise: float) -> None:
    """Other ranks of its pipeline are as late among nodes, but not the last in their own node."""
    assert ("node-slow", "node007", "likely") in found(
        PIPELINE, 8, Fault("throttled", "node007", 1.9, (62,)), Fault("nic", "node002/nic2", 1.9), noise=noise
    )


@pytest.mark.parametrize(
    ("name", "rail", "nic", "seed"),
    [
        # Each host has a delayed GPU; in the communicators of GPU 4 that of one host is not delayed.
        (SHARDED, Fault("rail", "rail3", 2.6), Fault("nic", "node002/nic4", 2.2), 22),
        # One GPU of each host is delayed. The others are not, so the host with the longer delay is late.
        (EXPERT, Fault("rail", "rail7", 2.1), Fault("nic", "node002/nic3", 2.6), 4),
    ],
)
def test_a_host_whose_gpus_two_slow_links_delay_differently_is_not_slow(
    name: str, rail: Fault, nic: Fault, seed: int
) -> None:
    assert {code for code, _, _ in found(name, 4, rail, nic, seed=seed)} == {"bandwidth-low"}


def test_a_part_does_not_explain_equal_communicators_of_which_one_is_much_faster() -> None:
    """All healthy rates are a little below those of the machine type, also that of the other communicator of rail 7."""
    (finding,) = found(PIPELINE, 4, Fault("nic", "node000/nic7", 2.8), seed=196)
    assert finding == ("bandwidth-low", "dp7", "possible")


def report(nodes: int, *faults: Fault, machine: bool = True) -> Report:
    job = layout(SHARDED, nodes)
    log = log_of(job, simulate(job, faults, 0.02, 48, np.random.default_rng(7)))
    return evaluate_job(log, 0.0, read_rows(table_of_ranks(job)), machines(nodes) if machine else None)


def test_a_fault_that_begins_during_the_job() -> None:
    """The rate is that after the change, and the report has the number of the operation."""
    result = report(16, Fault("nic", "node006/nic4", 2, start=30))
    (finding,) = result.findings
    assert finding.subject == "node006/nic4"
    assert finding.since is not None
    assert "operation 30" in finding.since
    assert result.job is not None
    assert {one.slower_from for one in result.job.rates if one.low} == {30}
    (finding,) = report(8, Fault("throttled", "node002", 1.6, (17,), start=30)).findings
    assert "from operation 60 on" in finding.message or "from operation 30 on" in finding.message


@pytest.mark.parametrize(("fault", "steps"), [(NIC, 2), (RAIL, 2)])
def test_the_candidates_are_all_places_that_explain_a_fault(fault: Fault, steps: int) -> None:
    """As explanations.py finds them without the report. Each has the measurement that tells them apart."""
    job = layout(DATA, 8)
    (finding,) = report_of(job, [fault], 0.02, np.random.default_rng(7)).findings
    places = places_of(job, [fault])[fault]
    assert set(finding.candidates) == places.right | places.others
    assert len(finding.candidates) == 9
    assert "linkgauge fabric --hosts node000,node001,node002" in finding.steps[0]
    assert len(finding.steps) == steps


def test_nodes_that_wait_for_each_other_in_an_unknown_communicator() -> None:
    """Without the lines of the pipeline, both nodes are late for as long. Neither is named for sure."""
    job = layout(PIPELINE, 8)
    log = log_of(job, simulate(job, [INPUT], 0.02, 48, np.random.default_rng(7)))
    for name in [name for name, one in log.communicators.items() if one.name == "pp"]:
        del log.communicators[name]
    (finding,) = evaluate_job(log, 0.0, read_rows(table_of_ranks(job)), machines(8)).findings
    assert (finding.code, finding.confidence, finding.candidates) == ("node-slow", "possible", ("node001", "node005"))


def test_a_wrong_expected_rate_is_not_checked_instead_of_a_finding() -> None:
    job = layout(DATA, 8)
    slow = [Fault("rail", f"rail{rail}", 1.35) for rail in range(8)]
    report = report_of(job, slow, 0.02, np.random.default_rng(7))
    assert report.findings == ()
    assert ["the expected rate can be wrong" in one.why for one in report.not_checked] == [True]


def test_without_a_machine_type_equal_communicators_are_compared() -> None:
    result = report(16, NIC, machine=False)
    assert [(one.code, one.subject, one.basis) for one in result.findings] == [("bandwidth-low", "node006/nic4", "kin")]
    assert result.profile is None


def test_all_communicators_slow_is_not_decidable() -> None:
    """Computation at the same time and settings of NCCL slow all of them; that is no fault of one link."""
    slow = [Fault("rail", f"rail{rail}", 2) for rail in range(8)]
    findings = report(8, *slow).findings
    assert {(one.code, one.confidence, one.severity) for one in findings} == {("bandwidth-low", "possible", "warning")}
    assert all("no equal communicator is faster" in one.message for one in findings)


@pytest.mark.parametrize("text", ["", "rank,host\n", "rank,host,gpu\n0,a,x\n", "rank,host,gpu\n0,a,0\n0,b,0\n", "\x00"])
def test_a_damaged_table_of_ranks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="first line|no rank|same rank|line contains NUL"):
        read_rows(text)
