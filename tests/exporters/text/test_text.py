"""A report as text. The expected texts are in tests/golden; LINKGAUGE_GOLDEN=write writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.exporters.text.not_checked import gaps
from linkgauge.exporters.text.report import Amount, as_text
from linkgauge.exporters.text.terminal import cells, safe, wrap
from linkgauge.exporters.text.vocabulary import listed
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Run
from linkgauge.models.facts.registry import KINDS
from linkgauge.models.graph.topology import Device, Topology
from linkgauge.models.report import Finding, Profile, Report

GOLDEN = Path(__file__).parents[2] / "golden"
AMOUNTS: tuple[Amount, ...] = ("brief", "usual", "full")
AT = 1795230000.0
GPU = "GPU gpu{} (NVIDIA H100 SXM5 80GB)"

HEALTHY = Report(
    node="gpu-a17",
    taken_at="2026-11-21T03:00:00Z",
    source="live",
    context="host",
    profile=Profile("aws-p5.48xlarge", "DMI product name p5.48xlarge"),
    verdict="ok",
    checks={"pcie-link-narrow": True, "gpu-missing": True, "nic-missing": True, "numa-memory-missing": True},
    topology=Topology(
        (
            *(Device(f"package{n}", "package") for n in range(2)),
            *(Device(f"numa{n}", "numa") for n in range(2)),
            *(Device(f"0000:{n:02x}:00.0", "gpu") for n in range(8)),
            *(Device(f"0000:{n:02x}:00.0", "nic") for n in range(32, 64)),
            Device("0000:10:01.0", "root-port"),
            Device("md0", "array"),
        )
    ),
    runs=(
        Run(name="pci", ok=True, seconds=0.0312, at=AT),
        Run(name="net", ok=True, seconds=0.0141, at=AT),
        Run(name="nvml", ok=True, seconds=1.1, at=AT),
        Run(name="host_copy", ok=True, seconds=2.4, bytes=34359738368, at=AT),
    ),
)

NARROW = Finding(
    code="pcie-link-narrow",
    severity="critical",
    subject="0000:53:00.0",
    subject_name=GPU.format(3),
    message="GPU gpu3 trained at x8 of x16: 31.5 GB/s, both ends can do 63.0 GB/s",
    expected=63015384615.0,
    observed=31507692307.0,
    unit="bytes_per_second",
    basis="capability",
    expected_source="both ends support 32 GT/s x16",
    cause="trained at x8: the slot, riser or cable, not the card's setting",
    limits={"0000:52:01.0>0000:53:00.0": 31507692307.0},
    explains=("bandwidth-low:gpu3-numa0", "bandwidth-low:numa0-gpu3"),
    impact={"all_reduce": 1.0, "copy": 2.0},
    location={"slot": "PCIE-5", "module_id": 3, "port_label": None},
    since="2026-11-20T18:12:00Z",
    evidence=(
        Evidence("sys/bus/pci/devices/0000:53:00.0/current_link_width", "8"),
        Evidence("sys/bus/pci/devices/0000:53:00.0/max_link_width", "16"),
        Evidence("host_copy", "gpu3-numa0 27.1 GB/s over 268435456 bytes"),
    ),
    remedy="Drain the node, switch its power off and on again: a warm reboot can keep the bad training. "
    "Reseat the card, riser or cable. Look for dust and bent contacts.",
)


def port_down(number: int) -> Finding:
    return Finding(
        code="nic-port-down",
        severity="critical",
        subject=f"mlx5_{number}/1",
        subject_name=f"NIC mlx5_{number}",
        message="the port is Down, physical state Polling; 6 equal ports are Active",
        cause="no light or no partner: the cable, the module or the switch's port",
        location={"slot": f"PCIE-{number}"},
        evidence=(
            Evidence(f"sys/class/infiniband/mlx5_{number}/ports/1/state", "1: DOWN"),
            Evidence(f"sys/class/infiniband/mlx5_{number}/ports/1/phys_state", "2: Polling"),
        ),
        remedy="Physical state Polling or Disabled: look at the cable at both ends and at the switch's port.",
    )


FAILED = replace(
    HEALTHY,
    verdict="failed",
    findings=(
        Finding(
            code="pcie-path-bottleneck",
            severity="info",
            subject="0000:e0:01.0",
            message="the uplink of 2 NVMe disks carries 15.8 GB/s, they can do 31.5 GB/s",
            cause="built that way",
        ),
        port_down(4),
        port_down(5),
        NARROW,
        replace(port_down(9), severity="warning", silenced="spare, no cable until the new switch comes"),
        Finding(
            code="bandwidth-low",
            severity="warning",
            confidence="likely",
            subject="numa1",
            message="triad numa1 reaches 151.2 GB/s, expected 240.0 GB/s and at least 216.0 GB/s",
            expected=240e9,
            observed=151.2e9,
            unit="bytes_per_second",
            basis="kin",
            expected_source="numa0 of this node",
            cause="no state that was read explains it",
            evidence=(Evidence("host_memory", "triad numa1 151.2 GB/s"),),
        ),
    ),
    not_checked=(
        *(
            NotChecked(
                what=f"Pci.{field}",
                subject=f"0000:{n:02x}:00.0",
                reason=Reason.PERMISSION,
                path=f"sys/bus/pci/devices/0000:{n:02x}:00.0/{file}",
                detail="Permission denied",
                how="run as root",
            )
            for n in range(8)
            for field, file in (("speed", "current_link_speed"), ("width", "current_link_width"))
        ),
        NotChecked(what="Pci", subject="0000:99:00.0", reason=Reason.OTHER, detail="answers no more"),
        NotChecked(
            what="Node.product",
            subject="node",
            reason=Reason.NOT_INSTALLED,
            detail="sys/class/dmi/id/product_name is not there",
        ),
        NotChecked(
            what="rate of all_reduce",
            subject="gpu0-...-gpu7",
            reason=Reason.NO_EXPECTATION,
            detail="measured, and nothing says what to expect",
        ),
        NotChecked(
            what="NvLink.error_count",
            subject="gpu3",
            reason=Reason.PERMISSION,
            detail="NVML: insufficient permissions",
            how="run as root",
        ),
    ),
    checks={**HEALTHY.checks, "nvlink-errors": False, "pcie-link-slow": False},
    runs=(*HEALTHY.runs, Run(name="kernel_log", ok=False, seconds=0.001, at=AT)),
)

UNKNOWN = replace(
    HEALTHY,
    verdict="unknown",
    source="capture",
    checks={**HEALTHY.checks, "nvlink-inactive": False, "gpu-driver-failed": False, "nvlink-errors": False},
    not_checked=(
        NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.NOT_INSTALLED,
            detail="libnvidia-ml.so.1 is not here",
            how="install the driver's library",
        ),
    ),
)

DUMPS = Report(
    node=None,
    taken_at=None,
    source="dumps",
    context="dumps",
    profile=None,
    verdict="unknown",
    findings=(
        Finding(
            code="not-enough-evidence",
            severity="info",
            confidence="possible",
            subject="node",
            message="all_reduce hangs for pairs under one switch; collect `lspci -vvv` as root (ACSCtl)",
            evidence=(Evidence("nccl.txt:41", "\x1b[31mNCCL WARN\x1b[0m " + "timeout " * 60),),
        ),
    ),
    checks={},
)


@pytest.mark.parametrize(
    ("name", "report"), [("healthy", HEALTHY), ("failed", FAILED), ("unknown", UNKNOWN), ("dumps", DUMPS)]
)
def test_reads_as_before(name: str, report: Report, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"text_{name}.txt", as_text(report, colour=False))


def findings(wild: st.SearchStrategy[str]) -> st.SearchStrategy[Finding]:
    """Findings whose strings are drawn from `wild`."""
    maybe = st.none() | wild
    some = st.lists(wild, max_size=3).map(tuple)
    return st.builds(
        Finding,
        code=wild,
        severity=st.sampled_from(["critical", "warning", "info"]),
        confidence=st.sampled_from(["certain", "likely", "possible"]),
        subject=wild,
        subject_name=maybe,
        message=wild,
        expected=st.none() | st.floats() | st.integers() | wild,
        unit=maybe | st.sampled_from(["bytes", "bytes_per_second", "transfers_per_second"]),
        expected_source=maybe,
        cause=maybe,
        explains=some,
        impact=st.dictionaries(wild, st.floats(), max_size=2),
        location=st.dictionaries(wild, maybe | st.integers(), max_size=2),
        since=maybe,
        silenced=maybe,
        evidence=st.lists(st.builds(Evidence, wild, wild), max_size=8).map(tuple),
        remedy=maybe,
    )


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Reports whose external strings have any content and any length."""
    wild = st.text(max_size=30) | st.text("ab/-\x1b\r\n\u202e\u4e2d", min_size=80, max_size=120)
    maybe = st.none() | wild
    gap = st.builds(
        NotChecked, what=wild, subject=wild, reason=st.sampled_from(Reason), detail=wild, path=maybe, how=maybe
    )
    return Report(
        node=draw(maybe),
        taken_at=draw(maybe),
        source=draw(st.sampled_from(["live", "capture", "dumps"])),
        context=draw(st.sampled_from(["host", "job", "dumps"])),
        profile=draw(st.none() | st.builds(Profile, wild, wild)),
        verdict=draw(st.sampled_from(["ok", "degraded", "failed", "unknown"])),
        findings=tuple(draw(st.lists(findings(wild), max_size=4))),
        not_checked=tuple(draw(st.lists(gap, max_size=4))),
        checks=draw(st.dictionaries(wild, st.booleans(), max_size=4)),
        topology=Topology(tuple(draw(st.lists(st.builds(Device, wild, wild, wild), max_size=3)))),
        runs=tuple(
            draw(
                st.lists(st.builds(Run, name=wild, ok=st.booleans(), seconds=st.just(0.5), at=st.just(AT)), max_size=3)
            )
        ),
    )


@given(reports(), st.sampled_from(AMOUNTS))
def test_a_line_fits_and_only_prints(report: Report, amount: Amount) -> None:
    for line in as_text(report, colour=False, amount=amount).splitlines():
        assert cells(line) < 100
        assert line.isprintable()


@given(reports())
def test_an_escape_sequence_is_ours_or_none(report: Report) -> None:
    plain = re.sub(r"\x1b\[[0-9;]+m", "", as_text(report, colour=True))
    assert plain == as_text(report, colour=False)


@given(reports())
def test_every_finding_is_shown(report: Report) -> None:
    text = "".join(as_text(report, colour=False, amount="full").split())
    for finding in report.findings:
        assert "".join(safe(finding.message).split()) in text


def test_alike_findings_share_what_they_have_in_common() -> None:
    text = as_text(replace(HEALTHY, verdict="failed", findings=tuple(port_down(n) for n in range(8))), colour=False)
    assert text.count("no light or no partner") == 1
    assert all(f"mlx5_{n}/1" in text for n in range(8))


def test_wide_characters_take_two_columns() -> None:
    assert cells("\u4e2d\u6587 ab") == 7
    assert wrap("\u4e2d\u6587\u4e2d\u6587 ab", 5) == ["\u4e2d\u6587", "\u4e2d\u6587", "ab"]


def test_one_more_is_named_rather_than_counted() -> None:
    assert listed("abc", 2) == "a, b, c"
    assert listed("abcd", 2) == "a, b and 2 more"


def test_names_of_classes_are_not_shown() -> None:
    lost = tuple(
        NotChecked(what=f"{name}.{field}", subject="x", reason=Reason.OTHER, detail=f"{name} {field}")
        for name, kind in KINDS.items()
        for field in kind.__struct_fields__
    )
    shown = [gap.what for gap in gaps(lost)]
    assert len(shown) == len(lost)
    assert not [what for what in shown if "_" in what or "." in what]


def test_colour_only_adds_escape_sequences() -> None:
    coloured = as_text(FAILED, colour=True)
    assert "\x1b[1;31mFAILED\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == as_text(FAILED, colour=False)


def test_a_number_and_its_unit_stay_together() -> None:
    assert wrap("its power limit is 700 W", 24) == ["its power limit is 700 W"]
    assert wrap("its power limit is 700 W", 23) == ["its power limit is", "700 W"]
    assert wrap("25.0 GB/s of 450.0 GB/s are lost", 20) == ["25.0 GB/s of", "450.0 GB/s are lost"]
