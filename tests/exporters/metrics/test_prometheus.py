"""The page of a scrape: whole outputs, the number of series, and that Prometheus reads it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from linkgauge.exporters.metrics.catalog import METRICS
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Run
from linkgauge.models.graph.topology import Topology
from linkgauge.models.report import Finding, Level, Report, ReportedObservation
from tests.support.nodes.described import BROKEN, EACH, NAMES, node, report_of, steady
from tests.support.nodes.measured_reports import flow, measured

GOLDEN = Path(__file__).parents[2] / "golden"
promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")


def values_of(report: Report, cycle: CycleInfo | None = None, detail: str = "") -> dict[tuple[str, str], float]:
    """The samples of a page, by name and labels in alphabetical order."""
    text = page(report, cycle, {"rack": "r7"}, detail).decode()
    samples = [sample for family in parse(text) for sample in family.samples]
    named = {(one.name, ",".join(f"{k}={v}" for k, v in sorted(one.labels.items()))): one.value for one in samples}
    assert len(named) == len(samples), "Prometheus refuses a page that says something twice"
    return named


def lines(report: Report) -> str:
    """A page, with numbers as prometheus_client 0.26 has them: before, exponents had a zero in front."""
    return re.sub(r"e\+0([1-9]\d)$", r"e+\1", page(report).decode(), flags=re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_whole_pages(name: str, golden: Callable[[Path, str], None]) -> None:
    report = steady(report_of(node(name)))
    text = re.sub(r'python="[^"]*",version="[^"]*"', 'python="",version=""', lines(report))
    golden(GOLDEN / f"metrics_{name}.txt", text)


def test_a_broken_node(golden: Callable[[Path, str], None]) -> None:
    before, after = (lines(steady(report_of(node("hgx-h100", text)))).splitlines() for text in ("", BROKEN))
    changed = [f"- {line}" for line in before if line not in after] + [
        f"+ {line}" for line in after if line not in before
    ]
    golden(GOLDEN / "metrics_hgx-h100_broken.txt", "\n".join(changed) + "\n")


@promtool
@pytest.mark.parametrize("detail", ["", "links"])
@pytest.mark.parametrize("name", NAMES)
def test_promtool_has_nothing_to_say(name: str, detail: str) -> None:
    text = page(measured(report_of(node(name))), CycleInfo(ended=1.0, seconds=0.1, moved={"x": 5}), detail=detail)
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", EACH)
def test_openmetrics_says_the_same(name: str) -> None:
    report = measured(report_of(node(name)))
    text = page(report, openmetrics=True).decode()
    families = parse_openmetrics(text)  # type: ignore[no-untyped-call]
    named = [(s.name, s.labels, s.value) for family in families for s in family.samples]
    assert sorted(named, key=repr) == sorted(
        ((s.name, s.labels, s.value) for family in parse(page(report).decode()) for s in family.samples), key=repr
    )


@pytest.mark.parametrize("name", ["hgx-h100", "hgx-b200", "hgx-a100", "xe9680"])
def test_a_node_of_eight_gpus_has_few_series(name: str) -> None:
    report = measured(report_of(node(name)))
    assert len(values_of(report, CycleInfo(ended=1.8e9, seconds=0.1))) <= 1250
    assert len(values_of(report, detail="links")) > 1250


def test_every_metric_and_label_is_in_the_table() -> None:
    """Each metric and label of the table also occurs."""
    broken = report_of(node("hgx-h100", BROKEN))
    first, *others = broken.findings
    stale = replace(others[0], stale="no answer within 80 s", since="2026-11-21T03:00:00Z")
    silenced = replace(broken, findings=(replace(first, silenced="known"), stale, *others[1:]))
    drains = ((others[0].code, others[0].subject), ("gpu-missing", "gone since"))
    cycle = CycleInfo(ended=1.8e9, seconds=0.1, moved={"host_copy": 5}, would_drain=drains)
    names: set[str] = set()
    for report in (measured(silenced), report_of(node("vm-p5"))):
        for name, labels in values_of(report, cycle):
            metric = METRICS[name]
            names.add(name)
            has = {pair.partition("=")[0] for pair in re.split(r",(?=\w+=)", labels) if pair}
            assert has <= ({*metric.labels, "rack"} if "*" in metric.labels else set(metric.labels)), name
    assert names == set(METRICS)


def test_old_observations_end() -> None:
    report = replace(report_of(node("hgx-h100")), levels=(flow("numa0", "gpu0"),))
    at = 1795229940.0  # 02:59:00
    labels = "kind=copy,subject=numa0-gpu0"
    rate, counter = ("linkgauge_link_observed_bytes_per_second", labels), "linkgauge_link_traffic_bytes_total"
    young = values_of(report, CycleInfo(ended=at + 120, seconds=1, rate_lifetime=120, count_lifetime=60))
    assert young[rate] == 9e9
    assert young["linkgauge_link_attained_ratio", labels] == 0.9
    assert young["linkgauge_observation_timestamp_seconds", labels] == at
    old = values_of(report, CycleInfo(ended=at + 121, seconds=1, rate_lifetime=120, count_lifetime=60))
    gone = {"linkgauge_link_attained_ratio", "linkgauge_observation_timestamp_seconds", rate[0]}
    assert {name for name, _ in young.keys() - old.keys()} == gone | {counter, "linkgauge_link_errors_total"}
    assert old["linkgauge_link_expected_bytes_per_second", labels] == 1e10


def test_pairs_are_the_worst_and_the_median() -> None:
    shown = values_of(measured(report_of(node("hgx-h100"))))
    pairs = {labels: value for (name, labels), value in shown.items() if name.endswith("_ratio") and "nvlink" in labels}
    assert pairs == {
        "kind=copy,subject=gpu0-gpu1,via=nvlink": pytest.approx(0.9),
        "kind=copy,subject=node,via=nvlink": pytest.approx(0.9275),
    }


def test_of_several_sizes_the_longest_is_shown() -> None:
    sizes = [
        msgspec.structs.replace(flow("numa0", "gpu0", reached=reached), size=size)
        for size, reached in ((4096, 0.1), (1 << 28, 1))
    ]
    for levels in (sizes, sizes[::-1]):
        shown = values_of(replace(report_of(node("hgx-h100")), levels=tuple(levels)))
        assert shown["linkgauge_link_observed_bytes_per_second", "kind=copy,subject=numa0-gpu0"] == 1e10


def test_what_jobs_send_shows_what_a_link_can_do() -> None:
    at = "2026-11-21T03:00:00Z"
    seen = ReportedObservation(
        about="mlx5_2/1", quantity="port_traffic", unit="bytes_per_second", value=4.9e10, at=at, busy=True
    )
    report = report_of(node("hgx-h100"))
    shown = values_of(replace(report, observations=(*report.observations, seen)))
    assert shown["linkgauge_link_observed_bytes_per_second", "kind=port,subject=mlx5_2/1"] == 4.9e10
    assert shown["linkgauge_link_trained_bytes_per_second", "kind=port,subject=mlx5_2/1"] == 5e10


def test_inner_hops_are_there_while_a_finding_is_about_them() -> None:
    hop = "linkgauge_link_trained_bytes_per_second", "kind=pcie,subject=0000:19:00.0"
    healthy = report_of(node("hgx-h100"))
    finding = Finding(code="pcie-path-bottleneck", severity="critical", subject="0000:18:01.0", message="x")
    assert hop not in values_of(healthy)
    assert hop in values_of(replace(healthy, findings=(finding,)))
    assert hop in values_of(healthy, detail="links")


def test_equal_code_and_subject_have_the_highest_severity() -> None:
    findings = [
        Finding(code="pcie-errors", severity=severity, subject="node", message=severity)
        for severity in ("info", "critical", "warning")
    ]
    shown = values_of(replace(report_of(node("desktop")), findings=tuple(findings)))
    assert shown["linkgauge_finding_severity", "code=pcie-errors,subject=node"] == 3


def test_a_device_that_is_gone_has_no_series() -> None:
    whole = report_of(node("hgx-h100"))
    left = tuple(device for device in whole.topology.devices if device.id != "0000:1e:00.0")
    links = tuple(link for link in whole.topology.links if "0000:1e:00.0" not in (link.a, link.b))
    counted = tuple(one for one in whole.observations if one.about not in ("gpu1", "0000:1e:00.0"))
    without = replace(whole, topology=Topology(left, links), observations=counted)
    assert "0000:1e:00.0" not in page(without).decode()
    assert page(whole).decode().count("0000:1e:00.0") > 5


def test_nothing_unknown_is_a_number() -> None:
    """Links and flows without known values have no series."""
    empty = replace(report_of(node("vgpu")), levels=(Level(op="copy", ends=("gpu0", "gpu1")),), node=None, profile=None)
    shown = values_of(empty)
    assert not [name for name, _ in shown if "link_" in name]
    assert Counter(value for (name, _), value in shown.items() if "nan" in str(value).lower()) == Counter()
    assert ("linkgauge_node_info", "rack=r7") in shown


def test_sources_and_gaps() -> None:
    runs = (
        Run(name="nvml", ok=False, seconds=5.0, at=1.0),
        Run(name="host_copy", ok=True, seconds=0.5, bytes=7, at=2.0),
    )
    gaps = tuple(
        NotChecked(what="Gpu", subject=f"gpu{n}", reason=Reason.NO_ANSWER, detail="no answer within 5 s")
        for n in range(3)
    )
    report = replace(report_of(node("desktop")), runs=runs, not_checked=gaps)
    shown = values_of(report, CycleInfo(ended=9.0, seconds=0.25, stuck=1, moved={"host_copy": 70}))
    wanted: Iterable[tuple[str, str, float]] = (
        ("linkgauge_probe_success", "probe=nvml", 0.0),
        ("linkgauge_probe_timestamp_seconds", "probe=nvml", 1.0),
        ("linkgauge_probe_duration_seconds", "probe=host_copy", 0.5),
        ("linkgauge_probe_bytes_total", "probe=host_copy", 70.0),
        ("linkgauge_not_checked", "check=Gpu,reason=no-answer", 3.0),
        ("linkgauge_stuck_children", "", 1.0),
        ("linkgauge_cycle_timestamp_seconds", "", 9.0),
        ("linkgauge_cycle_duration_seconds", "", 0.25),
    )
    assert {(name, labels): shown.get((name, labels)) for name, labels, _ in wanted} == {
        (name, labels): value for name, labels, value in wanted
    }
    assert ("linkgauge_probe_bytes_total", "probe=nvml") not in shown


def test_errors_of_single_nvlinks() -> None:
    """The 16 links with most errors of a kind; with detail all of them. The link is a label."""
    counts = {f"gpu{gpu}/nvlink{link}": gpu * 18 + link for gpu in range(2) for link in range(18)}
    report = report_of(node("hgx-h100"))
    seen = [
        ReportedObservation(about=about, quantity="nvlink_replay", unit="count", value=count, at="2026-11-21T03:00:00Z")
        for about, count in counts.items()
    ]
    report = replace(report, observations=tuple(seen))
    name, address = "linkgauge_link_errors_total", report.topology.by_name["gpu1"].id
    shown = [labels for (metric, labels) in values_of(report) if metric == name]
    assert len(shown) == 16
    assert f"kind=nvlink_replay,link=17,subject={address}" in shown
    assert f"kind=nvlink_replay,link=1,subject={address}" not in shown
    assert sum(metric == name for metric, _ in values_of(report, detail="links")) == 36
