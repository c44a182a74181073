"""Links judged by the traffic of jobs: a full link is good, a link that lags behind equal links is likely slow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import GpuLink
from linkgauge.models.facts.records import Evidence, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from tests.support.bare_findings import bare
from tests.support.nodes.described import node

RAILS = tuple(f"mlx5_{number}/1" for number in range(2, 10))  # of 400 Gb/s
NVLINKS = tuple(f"gpu0/nvlink{number}" for number in range(18))
EVEN = dict.fromkeys(RAILS, 31e9)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return collect_all(SOURCES, node("hgx-h100"))


def evaluated(records: list[Record], peaks: Mapping[str, float], kind: str = "port") -> Report:
    seen = [
        Observation(
            about=about,
            quantity=f"{kind}_traffic",
            unit="bytes_per_second",
            value=value,
            at=1000,
            busy=True,
            evidence=Evidence(f"sys/class/infiniband/{about}", f"{value:.4g}"),
        )
        for about, value in peaks.items()
    ]
    return evaluate(assemble([*records, *seen], Site(), 1000, origin="live"))


def slow(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.code == "bandwidth-low"]


def test_a_rail_that_lags_behind(records: list[Record]) -> None:
    (finding,) = slow(evaluated(records, {**EVEN, "mlx5_4/1": 18e9}))
    assert replace(bare(finding), impact={}, evidence=()) == Finding(
        code="bandwidth-low",
        severity="warning",
        confidence="likely",
        subject="mlx5_4/1",
        message="carried at most 18.0 GB/s in any second of a job, where 7 equal links carried 31.0 GB/s",
        expected=31e9,
        observed=18e9,
        unit="bytes_per_second",
        basis="kin",
        expected_source="median of 7 links of infiniband in the same job",
        cause="a job sends as much over each of them: this one is slower, or is used otherwise",
        location={"port_above": "0000:3a:01.0"},
        remedy="Measure it when the node is idle: linkgauge diagnose --level full.",
    )


def test_an_nvlink_that_lags_behind(records: list[Record]) -> None:
    report = evaluated(records, {**dict.fromkeys(NVLINKS, 14e9), "gpu0/nvlink7": 9e9}, "nvlink")
    assert [one.subject for one in slow(report)] == ["gpu0/nvlink7"]


@pytest.mark.parametrize(
    "peaks",
    [
        EVEN,
        {**EVEN, "mlx5_4/1": 28e9},  # a little less
        {rail: 31e9 / (1 + place) for place, rail in enumerate(RAILS)},  # the other links do not agree
        {**dict.fromkeys(RAILS, 4e9), "mlx5_4/1": 1e9},  # the job hardly uses them
        {"mlx5_2/1": 31e9, "mlx5_3/1": 31e9, "mlx5_4/1": 18e9},  # too few
        {"mlx5_0/1": 1e9, **EVEN},  # of another kind
        {"mlx5_77/1": 31e9, "eth0": 1e9, "numa0": 5e9},  # a subject without such a link
    ],
)
def test_no_alarm(records: list[Record], peaks: Mapping[str, float]) -> None:
    assert slow(evaluated(records, peaks)) == []


def test_a_link_that_was_full_is_proven_good(records: list[Record]) -> None:
    report = evaluated(records, {"mlx5_2/1": 47.5e9, "mlx5_3/1": 30e9})
    (level,) = report.levels
    assert (level.op, level.ends, level.link_class, level.observed) == (
        "traffic",
        ("0000:1c:00.0", "mlx5_2/1"),
        "infiniband",
        47.5e9,
    )
    (expected,) = level.expected
    assert expected.low <= 47.5e9
    assert expected.source.endswith("; carried in one second of a job's own traffic")
    assert report.checks["bandwidth-low"]
    assert slow(report) == []


def test_a_link_to_a_switch_is_one_to_the_fabric(records: list[Record]) -> None:
    (level,) = evaluated(records, {"gpu0/nvlink7": 22e9}, "nvlink").levels
    assert level.ends == ("0000:1b:00.0", "nvfabric")


def test_all_nvlinks_of_a_gpu_at_once(records: list[Record]) -> None:
    """All links together are nearly full, so each link is. A GPU that sends less may have less to send."""
    report = evaluated(
        records, {"gpu0": 400e9, **{f"gpu{number}": 250e9 for number in range(1, 7)}, "gpu7": 90e9}, "nvlink"
    )
    (level,) = report.levels
    assert (level.op, level.ends, level.link_class, level.rated, level.observed) == (
        "traffic",
        ("0000:1b:00.0", "nvfabric"),
        "nvlink4",
        18 * 25e9,
        400e9,
    )
    assert slow(report) == []


def test_a_sum_is_not_that_of_a_link_to_a_peer() -> None:
    """If NVLinks connect GPUs directly, the sum shows nothing about a single link."""
    peers = collect_all(SOURCES, node("a100-pcie"))
    report = evaluated(peers, {"gpu0": 90e9, "gpu1": 90e9, "gpu2": 90e9, "gpu3": 20e9}, "nvlink")
    assert (slow(report), report.levels) == ([], ())


def test_a_sum_of_links_of_which_one_is_down_proves_nothing(records: list[Record]) -> None:
    cut = [
        replace(one, active=False) if one.key == "gpu0/nvlink7" else one for one in records if isinstance(one, GpuLink)
    ]
    rest = [one for one in records if not isinstance(one, GpuLink)]
    assert evaluated([*rest, *cut], {"gpu0": 370e9}, "nvlink").levels == ()


def test_more_than_passes_is_no_traffic(records: list[Record]) -> None:
    """A rate above the link rate comes from a counter that was reset or misread."""
    report = evaluated(records, {**EVEN, "mlx5_4/1": 1e13})
    assert (slow(report), report.levels) == ([], ())


@given(st.dictionaries(st.sampled_from([*RAILS, *NVLINKS, "eth0", "gpu0"]), st.floats(0, 1e12)), st.text())
def test_any_peaks_are_judged(records: list[Record], peaks: Mapping[str, float], kind: str) -> None:
    for quantity in ("port", "nvlink", kind):
        report = evaluated(records, peaks, quantity)
        assert all(one.observed is not None and one.observed >= one.expected[0].low for one in report.levels)
        assert all(one.observed < 0.85 * one.expected for one in slow(report))  # type: ignore[operator]
