"""A report as JSON is a public contract: names, schema, and no lost value."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.exporters.formats.json import as_json
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Run
from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.report import Expectation, Finding, Level, Profile, Report, ReportedObservation

text = st.text(max_size=12)
maybe = st.none() | text
number = st.floats(allow_nan=False, allow_infinity=False)
rate = st.none() | number
flag = st.none() | st.booleans()
basis = st.sampled_from(["site", "profile", "capability", "kin", "baseline"])
size = st.none() | st.integers(0, 1 << 60)


def few(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


findings = st.builds(
    Finding,
    code=text,
    kind=st.sampled_from(["state", "event", "measurement"]),
    severity=st.sampled_from(["critical", "warning", "info"]),
    confidence=st.sampled_from(["certain", "likely", "possible"]),
    subject=text,
    subject_name=maybe,
    message=text,
    expected=rate | st.integers(-(1 << 60), 1 << 60) | text,
    observed=rate | text,
    unit=maybe,
    basis=st.none() | basis,
    expected_source=maybe,
    cause=maybe,
    limits=st.dictionaries(text, number, max_size=2),
    explains=few(text),
    impact=st.dictionaries(text, number, max_size=2),
    location=st.dictionaries(text, maybe | st.integers(0, 99), max_size=2),
    since=maybe,
    silenced=maybe,
    evidence=few(st.builds(Evidence, text, text)),
    remedy=maybe,
)
levels = st.builds(
    Level,
    op=text,
    ends=few(text),
    via=text,
    size=size,
    beside=few(few(text)),
    link_class=text,
    rated=rate,
    trained=rate,
    expected=few(
        st.builds(Expectation, basis=basis, low=number, typical=number, high=number, bottleneck=maybe, source=text)
    ),
    observed=rate,
)
reports = st.builds(
    Report,
    node=maybe,
    taken_at=maybe,
    source=st.sampled_from(["live", "capture", "dumps"]),
    context=st.sampled_from(["host", "job", "dumps"]),
    profile=st.none() | st.builds(Profile, text, text),
    verdict=st.sampled_from(["ok", "degraded", "failed", "unknown"]),
    findings=few(findings),
    not_checked=few(
        st.builds(
            NotChecked, what=text, subject=text, reason=st.sampled_from(Reason), detail=text, path=maybe, how=maybe
        )
    ),
    checks=st.dictionaries(text, st.booleans(), max_size=3),
    levels=few(levels),
    observations=few(
        st.builds(ReportedObservation, about=text, quantity=text, unit=text, value=number, at=text, busy=flag)
    ),
    topology=st.builds(
        Topology,
        few(st.builds(Device, text, text, text, size, few(text))),
        few(st.builds(Link, text, text, text, text, rate, rate, rate)),
    ),
    runs=few(st.builds(Run, name=text, ok=st.booleans(), seconds=number, bytes=st.integers(0, 1 << 60), at=number)),
)


@given(reports)
def test_a_report_comes_back_whole(report: Report) -> None:
    written = msgspec.json.decode(as_json(report))
    gaps = [{"what": one.what, "subject": one.subject, "why": one.why, "how": one.how} for one in report.not_checked]
    assert written.pop("not_checked") == gaps
    assert msgspec.convert(written, type=Report) == replace(report, not_checked=())


def test_the_names_are_those_of_the_contract() -> None:
    finding = Finding(code="gpu-missing", severity="critical", subject="node", message="7 GPUs, there should be 8")
    level = Level(op="copy", ends=("numa0", "gpu3"), link_class="pcie5x16")
    report = Report(
        node="a",
        taken_at=None,
        source="live",
        context="host",
        profile=None,
        verdict="failed",
        findings=(finding,),
        levels=(level,),
    )
    decoded = json.loads(as_json(report))
    assert " ".join(decoded) == (
        "schema node taken_at source context profile verdict findings not_checked checks coverage impact cost training "
        "levels observations topology cables runs seconds job"
    )
    assert " ".join(decoded["findings"][0]) == (
        "code kind severity confidence subject subject_name device fact message expected observed unit basis "
        "expected_source cause candidates case limits explains impact cost location since silenced stale evidence "
        "remedy steps first_step"
    )
    assert decoded["findings"][0]["since"] is None
    assert decoded["levels"][0]["class"] == "pcie5x16"
    assert as_json(report).startswith('{\n  "schema": "linkgauge.report/1",\n  "node": "a",\n')
