"""Any report gives a page that Prometheus accepts, whatever characters its names contain."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families as parse

from linkgauge.exporters.metrics.catalog import METRICS
from linkgauge.exporters.metrics.device_info import bus_id
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Run
from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.report import Expectation, Finding, Level, Profile, Report, ReportedObservation, Verdict

AT = "2026-11-21T03:00:00Z"
names = st.sampled_from(["gpu0", "gpu1", "0000:1b:00.0", "mlx5_0/1", "numa0", "host"]) | st.text(max_size=6)
rates = st.none() | st.floats(min_value=0, max_value=1e15)
kinds = st.sampled_from(["gpu", "nic", "port", "nvme", "root-port", "numa", "netdev"])


def few(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=4).map(tuple)


devices = st.builds(
    Device, id=names, kind=kinds, name=st.text(max_size=5), aliases=few(names), slot=st.text(max_size=3)
)
links = st.builds(
    Link,
    id=names,
    a=names,
    b=names,
    kind=st.sampled_from(["pcie", "nvlink", "port", "memory"]),
    rated=rates,
    trained=rates,
)
expected = st.floats(0, 1e15).map(lambda rate: Expectation(basis="kin", low=rate, typical=rate, high=rate, source="x"))
levels = st.builds(
    Level,
    op=st.sampled_from(["copy", "read"]),
    ends=st.lists(names, min_size=1, max_size=3).map(tuple),
    via=st.sampled_from(["", "nvlink"]),
    size=st.none() | st.integers(1, 9),
    rated=rates,
    trained=rates,
    expected=few(expected),
    observed=rates,
    observed_at=st.sampled_from([None, AT]),
    beside=few(few(names)),
)
quantities = st.sampled_from(["aer_fatal", "rx_bytes", "symbol_error", "processes", "port_traffic"])
units = st.sampled_from(["count", "bytes", "bytes_per_second"])
reports = st.builds(
    Report,
    node=st.none() | st.text(max_size=5),
    taken_at=st.sampled_from([None, AT]),
    source=st.just("live"),
    context=st.just("host"),
    profile=st.none() | st.builds(Profile, st.text(max_size=5), st.text(max_size=5)),
    verdict=st.sampled_from(get_args(Verdict)),
    findings=few(
        st.builds(
            Finding,
            code=names,
            severity=st.sampled_from(["critical", "warning", "info"]),
            subject=names,
            message=names,
            silenced=st.none() | names,
        )
    ),
    not_checked=few(
        st.builds(NotChecked, what=names, subject=names, reason=st.sampled_from(Reason), detail=st.text(max_size=9))
    ),
    checks=st.dictionaries(names, st.booleans(), max_size=3),
    levels=few(levels),
    observations=few(
        st.builds(
            ReportedObservation, about=names, quantity=quantities, unit=units, value=st.floats(0, 1e18), at=st.just(AT)
        )
    ),
    topology=st.builds(Topology, few(devices), few(links)),
    runs=few(
        st.builds(
            Run, name=names, ok=st.booleans(), seconds=st.floats(0, 9), bytes=st.integers(0, 9), at=st.floats(0, 9)
        )
    ),
)


def read(page: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    samples = [sample for family in parse(page.decode()) for sample in family.samples]
    values = {(one.name, frozenset(one.labels.items())): one.value for one in samples}
    assert len(values) == len(samples)
    return values


@given(reports, st.sampled_from(["", "links"]))
def test_any_report(report: Report, detail: str) -> None:
    values = read(page(report, labels={"rack": 'a"b\\c\nd'}, detail=detail))
    assert {name for name, _ in values} <= set(METRICS)
    assert values["linkgauge_verdict", frozenset({("verdict", report.verdict)})] == 1
    assert all(value == value for value in values.values())
    info = next(labels for name, labels in values if name == "linkgauge_node_info")
    assert ("rack", 'a"b\\c\nd') in info


@given(reports)
def test_detail_only_adds(report: Report) -> None:
    """Each series without detail is also in the page with detail, except the worst and the median of many flows."""
    assert read(page(report)).items() <= read(page(report, detail="links")).items()


GPU, OTHER, PORT = Device("gpu0", "gpu"), Device("gpu1", "gpu"), Device("root", "root-port", aliases=("bridge",))
ONE = Finding(code="x", severity="info", subject="two", message="")
BARE = Report(
    node=None, taken_at=AT, source="live", context="host", profile=None, verdict="ok", findings=(), not_checked=()
)


def counted(about: str, value: float) -> ReportedObservation:
    return ReportedObservation(about=about, quantity="aer_fatal", unit="count", value=value, at=AT)


@pytest.mark.parametrize(
    "report",
    [
        # Two links have one id, and it is the id of the GPU too: the series of the GPU has the rate of its bundle.
        replace(
            BARE,
            topology=Topology(
                (GPU, OTHER),
                (Link("gpu0", "gpu0", "gpu1", "nvlink", 25e9), Link("gpu0", "gpu0", "gpu1", "nvlink", 50e9)),
            ),
        ),
        # Two links lead to one port, and a finding is about the second.
        replace(
            BARE,
            findings=(ONE,),
            topology=Topology(
                (GPU, PORT), (Link("one", "gpu0", "root", "pcie", 16e9), Link("two", "gpu0", "root", "pcie", 32e9))
            ),
        ),
        # A port was counted under both of its names, and only one of the counters has moved.
        replace(
            BARE,
            topology=Topology((PORT,)),
            observations=(counted("root", 0.0), counted("bridge", 2.0)),
        ),
    ],
    ids=["two links of one id", "two links to one port", "two names of one port"],
)
def test_detail_changes_no_series_with_a_name_of_its_own(report: Report) -> None:
    usual = read(page(report))
    assert usual.items() <= read(page(report, detail="links")).items()
    assert any(name.startswith("linkgauge_link_") for name, _ in usual)


def test_a_link_from_a_gpu_to_itself_counts_once() -> None:
    report = replace(BARE, topology=Topology((GPU,), (Link("gpu0/nvlink0", "gpu0", "gpu0", "nvlink", 25e9, 25e9),)))
    labels = frozenset({("subject", "gpu0"), ("kind", "nvlink")})
    assert read(page(report))["linkgauge_link_rated_bytes_per_second", labels] == 25e9


@given(reports)
def test_the_order_of_findings_does_not_matter(report: Report) -> None:
    assert read(page(report)) == read(page(replace(report, findings=report.findings[::-1])))


@given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_a_bus_id_is_written_as_nvml_does(domain: int, bus: int, device: int, function: int) -> None:
    """nvml.h: NVML_DEVICE_PCI_BUS_ID_FMT is "%08X:%02X:%02X.0"."""
    address = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert bus_id(address) == f"{domain:08X}:{bus:02X}:{device:02X}.{function}"


@given(st.text())
def test_what_is_no_address_has_no_bus_id(text: str) -> None:
    assert bus_id(text) == "" or (":" in text and "." in text)
