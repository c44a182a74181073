"""Modes of GPUs, leftovers of earlier jobs, and recovery actions that the driver requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.machine import Event, Node
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Machine, Site
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import (
    BARE,
    DRIVER,
    GPU,
    NOW,
    address,
    board,
    findings,
    function,
    gpu,
    report_of,
    summaries,
    with_fields,
    without,
)

USE = ("gpu-in-use", address(3), "warning", "likely")
ASKS = ("gpu-xid", address(3), "critical", "certain")
OF_NODE = ("gpu-xid", "node", "critical", "certain")


@pytest.mark.parametrize(
    ("fields", "severity", "message"),
    [
        ({"mig": True}, "warning", "MIG is on, not off as on most equal GPUs"),
        ({"ecc": False, "ecc_pending": False}, "warning", "ECC is off, not on as on most equal GPUs"),
        (
            {"ecc": False},
            "warning",
            "ECC is off, not on as on most equal GPUs; ECC will be on after the next reset, and is off",
        ),
        ({"ecc_pending": False}, "info", "ECC will be off after the next reset, and is on"),
        ({"persistence": False}, "warning", "persistence mode is off, not on as on most equal GPUs"),
        (
            {"compute_mode": "exclusive process"},
            "warning",
            "compute mode is exclusive process, not default as on most equal GPUs",
        ),
        (
            {"compute_mode": "prohibited"},
            "critical",
            "compute mode is prohibited, not default as on most equal GPUs; no job can use it",
        ),
        ({"mig": None, "ecc": None, "ecc_pending": None, "persistence": None, "compute_mode": None}, None, None),
    ],
)
def test_modes(fields: dict[str, Any], severity: str | None, message: str | None) -> None:
    found = findings(board(**fields))
    expected = [("gpu-mode", address(3), severity, f"GPU gpu3: {message}")] if severity else []
    assert [(one.code, one.subject, one.severity, one.message) for one in found] == expected


def test_two_gpus_that_differ_are_no_finding() -> None:
    two = [replace(GPU, key="gpu0"), replace(GPU, key="gpu1", persistence=False)]
    assert summaries([BARE, *two]) == []
    other = replace(GPU, key="gpu2", name="NVIDIA A2", persistence=False)
    assert summaries([*board(), other]) == []


def test_error_correction_that_all_gpus_lack() -> None:
    """GPUs with HBM have ECC from the factory. Equal GPUs without ECC are no proof that it is meant so."""
    records = board()
    for number in range(8):
        records = with_fields(records, f"gpu{number}", ecc=False, ecc_pending=False)
    assert summaries(records) == [("gpu-mode", address(number), "info", "certain") for number in range(8)]
    assert findings(records)[0].message == "GPU gpu0: ECC is off, not on as on a new H100 SXM5 80GB"
    ours = Machine(name="ours", source="the order", gpu="*H100*", gpus=8, ecc=False)
    assert summaries(records, site=Site(machine=(ours,))) == []


def test_the_site_knows_the_modes() -> None:
    """A mode of the site file is right, whatever mode the other GPUs have."""
    ours = Machine(name="ours", source="the order", gpu="*H100*", gpus=8, persistence=False, mig=True)
    (found,) = findings(board(persistence=False, mig=True), site=Site(machine=(ours,)))[:1]
    assert (found.subject, found.confidence, found.basis) == (address(0), "certain", "site")
    assert found.message == "GPU gpu0: MIG is off, not on as on ours; persistence mode is on, not off as on ours"
    subjects = {one.subject for one in findings(board(persistence=False, mig=True), site=Site(machine=(ours,)))}
    assert subjects == {address(number) for number in range(8)} - {address(3)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"memory_used": 40 << 30}, [USE]),
        ({"memory_used": 2 << 30}, []),  # driver and firmware
        ({"memory_used": 40 << 30, "processes": 2}, []),  # a job runs
        ({"memory_used": 40 << 30, "processes": None}, []),
        ({"memory_used": 40 << 30, "clock_reasons": ()}, []),
        ({"memory_used": 40 << 30, "virtualization": "host vGPU"}, []),
        ({"memory_used": 40 << 30, "virtualization": "passthrough"}, [USE]),
        ({"memory_used": 40 << 30, "c2c_links": 10}, []),
    ],
)
def test_memory_that_no_process_holds(fields: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    assert [one for one in summaries(board(**fields)) if one[0] == "gpu-in-use"] == expected


def test_graphics_hold_memory_too() -> None:
    assert summaries(with_fields(board(memory_used=40 << 30), address(3), pci_class=0x030000)) == []


def test_memory_of_a_divided_gpu() -> None:
    records = board(memory_used=40 << 30)
    for number in range(8):
        records = with_fields(records, f"gpu{number}", mig=True)
    assert summaries(records) == []


@pytest.mark.parametrize("container", ["docker", None])
def test_in_a_container_others_processes_are_not_seen(container: str | None) -> None:
    assert summaries(with_fields(board(memory_used=40 << 30), "node", container=container)) == []


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({"mig": True}, "Drain the node. Set the MIG mode: sudo nvidia-smi -i {} -mig 0. Then reset the GPU."),
        ({"ecc": False}, "Drain the node. Set the ECC mode: sudo nvidia-smi -i {} -e 1. Then reset the GPU."),
        ({"persistence": False}, "Set the persistence mode: sudo nvidia-smi -i {} -pm 1."),
        ({"compute_mode": "prohibited"}, "Set the compute mode: sudo nvidia-smi -i {} -c DEFAULT."),
        (
            {"ecc_pending": False},
            "Drain the node and reset the GPU, so that the mode takes effect: sudo nvidia-smi --gpu-reset -i {}.",
        ),
        ({"recovery": "drain P2P"}, "End the programs that copy between this GPU and others."),
        ({"recovery": "bus reset"}, "Drain the node. Switch its power off and on."),
    ],
)
def test_the_first_step_names_mode_and_gpu(fields: dict[str, Any], step: str) -> None:
    records = board()
    for number in range(8):
        records = with_fields(
            records, f"gpu{number}", ecc=True, ecc_pending=True, persistence=True, compute_mode="default"
        )
    steps = next(one.steps for one in findings(with_fields(records, "gpu3", **fields)) if one.subject == address(3))
    assert steps[0] == step.format(address(3))


def test_before_a_job_begins_a_gpu_is_free() -> None:
    (found,) = findings(board(memory_used=12_000_000_000, processes=2), context="job")
    assert bare(found) == Finding(
        code="gpu-in-use",
        severity="warning",
        confidence="likely",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3: 2 processes use it, with 12 GB of its memory, before the job begins",
        expected=0,
        observed=2,
        unit="processes",
        cause="an earlier job that did not end completely",
        location={"module_id": 4},
        evidence=(Evidence("gpu3 processes", "2"), Evidence("gpu3 memory_used", "12 GB")),
        remedy=found.remedy,
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"recovery": "GPU reset"}, [ASKS]),
        ({"recovery": "node reboot"}, [OF_NODE]),
        ({"recovery": "drain and reset", "remap_pending": True}, [("gpu-row-remap", *ASKS[1:])]),
        ({"recovery": "node reboot", "remap_pending": True}, [("gpu-row-remap", *ASKS[1:]), OF_NODE]),
        ({"recovery": "GPU reset", "ecc_uncorrected": 3}, [("gpu-ecc", *ASKS[1:])]),
        ({"recovery": "GPU reset", "failure": "GPU is lost"}, [("gpu-missing", *ASKS[1:])]),
        ({"recovery": None}, []),
    ],
)
def test_what_the_driver_asks_for(fields: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    assert summaries(board(**fields)) == expected


def test_the_request_whole() -> None:
    (found,) = findings(board(recovery="drain P2P"))
    assert bare(found) == Finding(
        code="gpu-xid",
        severity="critical",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3 had an error, and its driver asks for: drain P2P",
        expected="none",
        observed="drain P2P",
        cause="an error that the driver logged (Xid) and cannot repair itself",
        location={"module_id": 4},
        evidence=(Evidence("gpu3 recovery", "drain P2P"),),
        remedy=found.remedy,
    )


def test_one_error_is_one_finding() -> None:
    logged = Event(key="xid", kind="xid", code=46, subject=address(3), text="GPU stopped processing", at=NOW - 60)
    assert [one[0] for one in summaries([*board(recovery="GPU reset"), logged])] == ["gpu-xid"]


FIELDS = [name for name in Gpu.__struct_fields__ if name not in ("key", "cites", "address", "name")]


@given(st.sets(st.sampled_from(FIELDS)), st.integers(0, 7), st.booleans())
def test_unknown_fields_are_never_a_finding(unsaid: set[str], number: int, refused: bool) -> None:
    records = with_fields(board(), f"gpu{number}", **dict.fromkeys(unsaid))
    gaps = [
        NotChecked(what=f"Gpu.{name}", subject=f"gpu{number}", reason=Reason.LOST, detail="Unknown Error")
        for name in unsaid
        if refused
    ]
    report = report_of([*records, *gaps])
    assert [one for one in report.findings if one.code.startswith(("gpu-", "pcie-", "driver-"))] == []


NUMBERS = st.none() | st.integers(-1, 2**40) | st.floats(0, 1e12)
ANY = st.builds(
    Gpu,
    key=st.sampled_from(["gpu0", "gpu1", "gpu2"]),
    name=st.none() | st.sampled_from([GPU.name, "NVIDIA A2"]),
    address=st.none() | st.sampled_from([address(0), address(9)]),
    failure=st.none() | st.text(max_size=20),
    recovery=st.none() | st.text(max_size=20),
    clock_reasons=st.none() | st.lists(st.text(max_size=20)).map(tuple),
    **{name: st.none() | st.booleans() for name in ("ecc", "ecc_pending", "remap_pending", "sram_threshold", "mig")},
    **dict.fromkeys(
        (
            "power_limit",
            "power_limit_default",
            "application_clock",
            "memory",
            "memory_used",
            "bar1",
            "ecc_uncorrected",
            "pcie_width",
            "processes",
            "module_id",
        ),
        NUMBERS,
    ),
)
SEEN = st.builds(
    lambda about, quantity, value, at: Observation(
        about=about, quantity=quantity, unit="count", value=value, at=at, evidence=Evidence("x", "x")
    ),
    st.sampled_from(["gpu0", "gpu1"]),
    st.sampled_from(["ecc_corrected", "pcie_replay", "clocks_hw_thermal"]),
    st.floats(0, 1e15),
    st.floats(NOW - 7200, NOW),
)


@given(st.lists(ANY, max_size=4), st.lists(SEEN, max_size=4), st.lists(SEEN, max_size=4), st.booleans())
def test_any_numbers_make_a_report(
    gpus: list[Gpu], seen: list[Observation], past: list[Observation], job: bool
) -> None:
    records: list[Record] = [BARE, DRIVER, *(function(number) for number in range(2)), *gpus, *seen]
    report = report_of(records, tuple(past), context="job" if job else None)
    assert all(one.message and one.cause and one.evidence for one in report.findings)
    keys = [(one.code, one.subject) for one in report.findings if one.subject != "node"]
    assert len({gpu.address for gpu in gpus}) < len(gpus) or len(keys) == len(set(keys))


def test_of_a_name_alone_nothing_is_judged() -> None:
    report = report_of([Gpu(key="gpu0", name="NVIDIA A100-SXM4-80GB")], origin="dumps")
    assert (report.checks, report.findings, report.verdict) == ({}, (), "unknown")


def test_a_gpu_alone_of_another_maker() -> None:
    """Rules for NVIDIA GPUs do not apply to GPUs of other makers."""
    radeon = Gpu(key="gpu0", name="MI300X", address=address(0), memory=206_141_652_992, memory_used=300_000_000)
    records = [Node(key="node", virtual=False, container=""), function(0, vendor=0x1002, driver="amdgpu"), radeon]
    assert summaries(records) == []
    assert summaries([*without(records, "gpu0"), Driver(key="amdgpu", version="6.8")]) == []
    assert summaries([*records, gpu(1, address=None)]) == []
