"""Memory of GPUs: a repaired error is no fault, and lifetime counts are history."""

from __future__ import annotations

from typing import Any

import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import (
    BARE,
    BOOTED,
    H100,
    HERE,
    NOW,
    address,
    board,
    counter,
    findings,
    gpu,
    report_of,
    summaries,
)

ECC = ("gpu-ecc", address(3), "critical", "certain")
ROWS = ("gpu-row-remap", address(3), "critical", "certain")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"remap_pending": True}, [ROWS]),
        ({"remap_failed": True}, [ROWS]),
        ({"remap_pending": True, "remap_failed": True}, [ROWS]),
        ({"remap_pending": True, "ecc_uncorrected": 4, "recovery": "GPU reset"}, [ROWS]),
        ({"remapped_correctable": 12, "remapped_uncorrectable": 9}, []),
        ({"remapped_correctable": 12, "full_banks": 0}, []),
        ({"remapped_correctable": 12, "full_banks": 2}, [("gpu-row-remap", address(3), "warning", "certain")]),
        ({"remap_failed": True, "full_banks": 2}, [ROWS]),
        ({"ecc_uncorrected": 1, "remapped_uncorrectable": 0}, [ECC]),
        ({"ecc_uncorrected": 1, "remapped_uncorrectable": 1}, []),
        ({"ecc_uncorrected": 1, "recovery": "drain and reset"}, [ECC]),
        ({"ecc_uncorrected": 1, "remap_pending": None, "remap_failed": None, "remapped_uncorrectable": None}, [ECC]),
        ({"sram_threshold": True}, [ECC]),
        ({"sram_threshold": True, "remap_pending": True}, [ECC, ROWS]),
        ({"ecc_uncorrected": 2, "sram_uncorrected": 2, "remapped_uncorrectable": 9}, [ECC]),
        ({"ecc_uncorrected": 2, "sram_uncorrected": 0, "remapped_uncorrectable": 9}, []),
        ({"ecc_uncorrected": 2, "sram_uncorrected": 1, "remap_pending": True}, [ECC, ROWS]),
        ({"ecc_corrected": 177}, []),
        ({"ecc_corrected_lifetime": 54_731_746_511, "ecc_uncorrected_lifetime": 900}, []),
        ({"ecc_uncorrected": None, "ecc_corrected": None, "sram_threshold": None, "remap_pending": None}, []),
    ],
)
def test_states(fields: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    assert summaries(board(**fields)) == expected


def test_errors_of_the_sram_whole() -> None:
    """Spare rows are for DRAM (NVIDIA, GPU Memory Error Management; Xid catalog, WORKFLOW_XID_48)."""
    (found,) = findings(board(ecc_uncorrected=3, sram_uncorrected=2, remapped_uncorrectable=9))
    assert found.message == "GPU gpu3: 2 uncorrected errors of its SRAM since the driver was loaded"
    assert found.cause == "the SRAM of the GPU (its caches and registers)"
    assert (found.remedy or "").startswith("Drain the node and reset the GPU: ")


@pytest.mark.parametrize(("recovery", "codes"), [("none", {"gpu-mode"}), ("GPU reset", {"gpu-mode", "gpu-ecc"})])
def test_rows_that_mig_hides_are_no_evidence(recovery: str, codes: set[str]) -> None:
    hidden: dict[str, Any] = {"remap_pending": None, "remap_failed": None, "remapped_uncorrectable": None}
    found = findings(board(mig=True, ecc_uncorrected=1, recovery=recovery, **hidden))
    assert {one.code for one in found} == codes


def test_a_pending_row_whole() -> None:
    (found,) = findings(board(remap_pending=True, cites={"remap_pending": HERE}))
    assert bare(found) == Finding(
        code="gpu-row-remap",
        severity="critical",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3: a row of its memory waits for a reset to be replaced: remapping pending",
        expected="none",
        observed="pending",
        cause="memory errors since the last reset",
        location={"module_id": 4},
        evidence=(HERE, Evidence("gpu3 ecc_uncorrected", "0")),
        remedy="Drain the node and reset the GPU: sudo nvidia-smi --gpu-reset -i 0000:13:00.0. If the row is not "
        "replaced then, run the vendor's field diagnostics.",
    )


def test_pages_of_older_gpus() -> None:
    (found,) = findings(board(remap_pending=True, remap_failed=None, remapped_uncorrectable=None))
    assert (found.code, found.message) == (
        "gpu-row-remap",
        "GPU gpu3: pages of its memory wait for a reset to be retired",
    )


def test_uncorrected_errors_whole() -> None:
    (found,) = findings([BARE, Gpu(key="gpu0", name="Tesla V100-SXM2-16GB", ecc_uncorrected=2)])
    assert bare(found) == Finding(
        code="gpu-ecc",
        severity="critical",
        subject="gpu0",
        subject_name="GPU gpu0 (Tesla V100-SXM2-16GB)",
        message="GPU gpu0 (Tesla V100-SXM2-16GB): 2 uncorrected memory errors since the driver was loaded",
        expected=0,
        observed=2,
        unit="count",
        cause="memory of the GPU that goes bad, or is too hot",
        evidence=(Evidence("gpu0 ecc_uncorrected", "2"),),
        remedy=found.remedy,
    )


def test_a_storm_of_corrected_errors() -> None:
    calm = [counter(f"gpu{number}", "ecc_corrected", 0) for number in range(8) if number != 3]
    storm, before = counter("gpu3", "ecc_corrected", 9.6e9), counter("gpu3", "ecc_corrected", 9.6e9 - 177_000, NOW - 10)
    (found,) = findings([*board(), *calm, storm], before)
    assert (found.code, found.subject, found.severity, found.confidence) == (*ECC[:3], "likely")
    assert found.message == "GPU gpu3: 17,700 corrected memory errors a second in 10 s; its equals have 0"
    assert (found.basis, found.observed, found.evidence) == ("kin", 17_700, (HERE,))
    alone = findings([BARE, gpu(3), storm], before)[0]
    assert (alone.basis, alone.message) == (None, f"GPU gpu3 ({H100}): 17,700 corrected memory errors a second in 10 s")
    (since_boot,) = findings([*board(), *calm, storm])
    assert since_boot.message.startswith("GPU gpu3: 96,000 corrected memory errors a second over 28 hours since boot")


def test_what_is_no_storm() -> None:
    few, before = counter("gpu3", "ecc_corrected", 177), counter("gpu3", "ecc_corrected", 170, NOW - 60)
    assert summaries([*board(), few], before) == []
    still = counter("gpu3", "ecc_corrected", 9.6e9)
    past = [counter("gpu3", "ecc_corrected", 9.6e9, NOW - seconds) for seconds in (86_400, 60)]
    assert summaries([*board(), still], *past) == []
    assert summaries([gpu(3), still]) == []  # the start of the count is not known


@pytest.mark.parametrize(("a_day", "found"), [(100, False), (8000, False), (20_000, True)])
@pytest.mark.parametrize("before", [None, 0.0])
def test_corrected_errors_that_all_gpus_have(a_day: float, found: bool, before: float | None) -> None:
    """No GPU is apart from its equals, so only the rate shows it."""
    seconds = NOW - BOOTED if before is None else 86_400.0
    counts = [counter(f"gpu{number}", "ecc_corrected", a_day * seconds / 86_400) for number in range(8)]
    past = (
        []
        if before is None
        else [counter(f"gpu{number}", "ecc_corrected", before, NOW - seconds) for number in range(8)]
    )
    expected = [("gpu-ecc", address(number), "warning", "likely") for number in range(8)] if found else []
    assert summaries([*board(), *counts], *past) == expected


@pytest.mark.parametrize("fields", [{"ecc_uncorrected": None}, {"ecc_uncorrected": 0}])
def test_uncorrected_errors_that_only_the_counter_shows(fields: dict[str, Any]) -> None:
    assert summaries([*board(**fields), counter("gpu3", "ecc_uncorrected", 2)]) == [ECC]


def test_what_is_refused_is_a_gap_and_not_ok() -> None:
    """With MIG the driver refuses these counts. Consumer cards have none."""
    none = dict.fromkeys(("ecc_uncorrected", "ecc_corrected", "sram_threshold", "remap_pending", "remap_failed"))
    gaps = [
        NotChecked(what=f"Gpu.{name}", subject="gpu0", reason=Reason.PERMISSION, detail="no permission")
        for name in none
    ]
    refused = report_of([BARE, gpu(0, **none), *gaps])
    assert {refused.checks[code] for code in ("gpu-ecc", "gpu-row-remap")} == {False}
    assert refused.verdict == "ok"
    without = report_of([BARE, gpu(0, **none)])
    assert {"gpu-ecc", "gpu-row-remap"} & without.checks.keys() == set()
