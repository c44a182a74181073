"""The cost of findings: for collectives, and for the steps of a described job. Without findings there is no cost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.text.cost import cost, slower
from linkgauge.exporters.text.terminal import painter
from linkgauge.models.diagnosis.impact import FABRIC, Impact, weigh
from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Expectation, Finding, Level, Range, Report, Training
from linkgauge.models.site.schema import Site
from linkgauge.models.training.cost import UnknownCost, cost_of
from linkgauge.models.training.job_spec import read_job
from tests.support.nodes.described import node

JOB = "llama3-70b,tp=8,dp=64,tokens=4M"
NARROW = "\n[device.gpu1]\nwidth = 8\n"
NO_COST = Impact({}, "none")
INACTIVE = "\n[device.gpu3]\ninactive = [7]\n"


def snapshot_of(further: str = "", job: str | None = None) -> Snapshot:
    return assemble(collect_all(SOURCES, node("hgx-h100", further)), Site(job=job), 1000, origin="capture")


@pytest.fixture(scope="module")
def healthy() -> Snapshot:
    return snapshot_of()


def limited(**limits: float) -> Finding:
    return Finding(
        code="bandwidth-low",
        severity="warning",
        subject="x",
        message="slow",
        limits=limits,
        expected=50e9,
        unit="bytes_per_second",
    )


def link(snapshot: Snapshot, end: str, kind: str) -> str:
    device = snapshot.topology.find(end)
    assert device
    return next(one.id for one in snapshot.topology.links if one.kind == kind and one.b == device.id)


def factors_of(snapshot: Snapshot, found: list[Finding]) -> Mapping[str, float]:
    return weigh(snapshot, found)[1].factors


def test_a_narrow_gpu_slows_what_leaves_the_node_and_an_nvlink_what_stays() -> None:
    report = evaluate(snapshot_of(NARROW + INACTIVE))
    assert {one.code: dict(one.impact) for one in report.findings if one.limits} == {
        "pcie-link-narrow": {"all_reduce": 1.0, "alltoall": 1.0, FABRIC: 1.587},
        "nvlink-inactive": {"all_reduce": 1.059, "alltoall": 1.059, FABRIC: 1.0},
    }
    assert report.impact == {"all_reduce": 1.059, "alltoall": 1.059, FABRIC: 1.587}
    assert report.training is None


def test_a_port_that_is_slower_than_its_finding_expects(healthy: Snapshot) -> None:
    found = factors_of(healthy, [limited(**{link(healthy, "mlx5_2/1", "port"): 25e9})])
    assert found == {"all_reduce": 1.0, "alltoall": 1.0, FABRIC: 2.0}


def test_a_path_that_carries_nothing_has_no_factor(healthy: Snapshot) -> None:
    """No path avoids the dead link, because it is the memory of a GPU."""
    assert factors_of(healthy, [limited(**{"0000:1b:00.0/memory": 0.0})]) == {}


def test_without_limits_there_are_no_factors(healthy: Snapshot) -> None:
    assert factors_of(healthy, []) == {}
    assert factors_of(healthy, [limited()]) == {}
    assert weigh(healthy, [limited(nothing=1.0)])[1] == Impact({}, "unknown"), "a limit of a link that no path has"


def test_observed_as_expected_costs_nothing(healthy: Snapshot) -> None:
    training = cost_of(healthy, read_job(JOB), Impact({"all_reduce": 1.0, "alltoall": 1.0, FABRIC: 1.0}, "none"), ())
    assert training.slower == Range(1.0, 1.0, 1.0)
    assert training.gpu_hours_a_day == 0
    assert training.critical_tokens == training.critical_tokens_now


def test_a_range_from_all_hidden_to_nothing_hidden(healthy: Snapshot) -> None:
    training = cost_of(
        healthy, read_job(JOB), Impact({"all_reduce": 1.059, "alltoall": 1.059, FABRIC: 1.9}, "slower"), ()
    )
    least, usual, most = (getattr(training.slower, name) for name in ("least", "usual", "most"))
    assert 1 <= least <= usual <= most
    assert usual > 1
    assert training.gpus == 512
    assert training.gpu_hours_a_day == pytest.approx(512 * 24 * (1 - 1 / usual), abs=0.06)
    assert training.critical_tokens is not None
    assert training.critical_tokens_now is not None
    assert training.critical_tokens_now > training.critical_tokens


def test_worse_links_never_make_a_job_faster(healthy: Snapshot) -> None:
    factors = [
        cost_of(healthy, read_job(JOB), Impact({"all_reduce": factor, FABRIC: factor}, "slower"), ()).slower
        for factor in (1.0, 1.01, 1.5, 3.0, 30.0)
    ]
    for name in ("least", "usual", "most"):
        assert [getattr(one, name) for one in factors] == sorted(getattr(one, name) for one in factors)


def test_a_job_that_waits_for_the_host_may_still_lose_by_slow_links(healthy: Snapshot) -> None:
    """Its program may use CUDA graphs that the description of the job leaves out."""
    slow = Impact({"all_reduce": 3.0, "alltoall": 3.0, FABRIC: 3.0}, "slower")
    short = "gpt-oss-120b,ep=64,dp=64,seq=1024,gbs=4096"
    waits, quick = (cost_of(healthy, read_job(job), slow, ()).slower for job in (short, f"{short},graphs"))
    assert waits is not None
    assert quick is not None
    assert waits.usual < quick.usual
    assert waits.most == quick.most > 1.05


def test_a_checkpoint_by_the_rates_of_disks(healthy: Snapshot) -> None:
    wanted = Expectation(basis="profile", low=6e9, typical=7e9, high=7.2e9, source="data sheet")
    levels = [
        Level(op="read", ends=(disk, "host"), observed=rate, expected=(wanted,))
        for disk, rate in (("nvme0n1", 7e9), ("nvme1n1", 3.5e9))
    ]
    training = cost_of(healthy, read_job(f"{JOB},ckpt=2.3TB"), NO_COST, levels)
    assert training.load_seconds == pytest.approx(2.3e12 / 64 / 14e9, abs=0.06)
    assert training.load_seconds_now == pytest.approx(2.3e12 / 64 / 10.5e9, abs=0.06)
    assert cost_of(healthy, read_job(JOB), NO_COST, levels).load_seconds is None


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ("llama3-70b,tp=3", "tp x pp = 3 does not divide 8 GPUs"),
        ("llama3-70b,tp=4,dp=3", "its 12 GPUs do not fill whole nodes of 8 GPUs"),
        ("bloom-176b,tp=8,dp=1", "memory"),
    ],
)
def test_jobs_without_a_known_cost_are_not_checked(job: str, why: str) -> None:
    report = evaluate(snapshot_of(NARROW, job))
    (gap,) = (one for one in report.not_checked if one.what == "impact")
    assert gap.why.startswith(f"{job}: {why}")
    assert report.training is None


def test_a_node_of_no_known_type(healthy: Snapshot) -> None:
    with pytest.raises(UnknownCost, match="machine type of this node is not known"):
        cost_of(replace(healthy, machine=None), read_job(JOB), NO_COST, ())


def shown(training: Training | None, **impact: float) -> list[str]:
    report = Report(
        node=None,
        taken_at=None,
        source="live",
        context="host",
        profile=None,
        verdict="failed",
        training=training,
        cost="slower" if impact else "none",
        impact={name.replace("_at_", "@"): factor for name, factor in impact.items()},
    )
    return list(cost(report, painter(False)))


def test_in_words() -> None:
    assert shown(None) == []
    training = Training(
        job=JOB,
        gpus=512,
        step_seconds=8.53,
        slower=Range(1.0, 1.069, 1.1),
        gpu_hours_a_day=793.2,
        critical_tokens=1078.0,
        critical_tokens_now=1707.0,
        load_seconds=2.6,
        load_seconds_now=3.4,
    )
    assert shown(training, all_reduce=1.059, alltoall=1.059, all_reduce_at_fabric=1.587) == [
        "COST",
        "  llama3-70b,tp=8,dp=64,tokens=4M on 512 GPUs: a step of 8.53 s takes 6.9 % longer (0 % with",
        "    more overlap of messages and computing, 10 % with less): 793 GPU-hours a day, as all wait for",
        "    this node",
        "  all_reduce and alltoall inside the node take 1.06 times as long; all_reduce over the fabric",
        "    takes 1.59 times as long",
        "  gradients limit a step below 1,707 tokens per GPU, without the findings below 1,078",
        "  this node reads its part of a checkpoint in 3 s, expected 3 s",
    ]
    assert shown(Training(job=JOB, gpus=8, step_seconds=2, slower=Range(1, 1, 1), gpu_hours_a_day=0)) == [
        "COST",
        "  llama3-70b,tp=8,dp=64,tokens=4M on 8 GPUs: a step of 2 s, and no finding makes it longer",
    ]


@pytest.mark.parametrize(
    ("impact", "words"),
    [
        ({}, []),
        ({"all_reduce": 1.0, "alltoall": 1.004}, ["no collective is slower"]),
        ({"all_reduce": 1.5}, ["all_reduce inside the node takes 1.5 times as long"]),
        ({"a": 1.5, "b@fabric": 1.0}, ["a inside the node takes 1.5 times as long; b over the fabric is not slower"]),
        (
            {"a": 1.5, "b": 1.5, "c": 1},
            ["a and b inside the node take 1.5 times as long; c inside the node is not slower"],
        ),
    ],
)
def test_collectives_in_words(impact: dict[str, float], words: list[str]) -> None:
    assert slower(impact) == words
