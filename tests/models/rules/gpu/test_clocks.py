"""Clocks: a limit by the power cap is normal; a limit by heat or the power supply is a fault."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.records import Evidence
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import GPU, HERE, NOW, address, board, counter, findings, summaries, with_fields

CERTAIN = [("gpu-throttled", address(3), "warning", "certain")]
LIKELY = [("gpu-throttled", address(3), "warning", "likely")]
HARMLESS = (
    "idle",
    "application clocks",
    "software power cap",
    "sync boost",
    "software thermal slowdown",
    "display clocks",
)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (("hardware slowdown", "hardware thermal slowdown"), CERTAIN),
        (("hardware slowdown", "hardware power brake"), CERTAIN),
        (("idle", "hardware power brake"), CERTAIN),
        (("hardware slowdown",), LIKELY),
        (("idle", "hardware slowdown"), []),
        (("software power cap", "software thermal slowdown"), []),
        ((), [("gpu-clocks-limited", address(3), "warning", "likely")]),  # 345 of 1,980 MHz
        (None, []),
    ],
)
def test_reasons(reasons: tuple[str, ...] | None, expected: list[tuple[str, ...]]) -> None:
    assert summaries(board(clock_reasons=reasons)) == expected


@given(st.sets(st.sampled_from(HARMLESS)))
def test_what_holds_a_healthy_gpu_back(reasons: set[str]) -> None:
    assert summaries(board(clock_reasons=tuple(sorted(reasons)), clock=1755e6)) == []


def test_whole() -> None:
    reasons = ("hardware slowdown", "hardware thermal slowdown")
    (found,) = findings(board(clock_reasons=reasons, temperature=91.0))
    assert bare(found) == Finding(
        code="gpu-throttled",
        impact={"compute": 2.0},
        cost="slower",
        severity="warning",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3 is slowed down: hardware thermal slowdown now, 345 of 1,980 MHz at 91 °C",
        expected="none",
        observed="hardware thermal slowdown",
        cause="heat: fans, filters, coolant, the heat sink, or the room",
        location={"module_id": 4},
        evidence=(Evidence("gpu3 clock_reasons", ", ".join(reasons)),),
        remedy=found.remedy,
    )


@pytest.mark.parametrize(
    ("quantity", "seconds", "expected"),
    [
        ("clocks_sw_thermal", 7, LIKELY),
        ("clocks_sw_thermal", 5, []),
        ("clocks_hw_thermal", 1, LIKELY),
        ("clocks_hw_thermal", 0.5, []),
        ("clocks_hw_power_brake", 1, LIKELY),
        ("clocks_sw_power", 60, []),
    ],
)
def test_time_of_the_last_minute(quantity: str, seconds: float, expected: list[tuple[str, ...]]) -> None:
    records = [*board(), counter("gpu3", quantity, 5000 + seconds)]
    assert summaries(records, counter("gpu3", quantity, 5000, NOW - 60)) == expected


def test_time_since_boot() -> None:
    """28 hours ago."""
    (found,) = findings([*board(), counter("gpu3", "clocks_hw_power_brake", 2000)])
    assert found.message == "GPU gpu3 is slowed down: hardware power brake for 2,000 of 100,000 s since boot"
    assert found.cause == "the board's power supply or its limit"
    assert found.evidence == (Evidence("gpu3 clock_reasons", "idle"), HERE)
    assert summaries([*board(), counter("gpu3", "clocks_sw_thermal", 9000)]) == []
    assert summaries([*with_fields(board(), "node", booted=None), counter("gpu3", "clocks_sw_thermal", 90_000)]) == []
    past = counter("gpu3", "clocks_hw_thermal", 5000, NOW - 60)
    assert summaries([*board(), counter("gpu3", "clocks_hw_thermal", 5000)], past) == []  # over since
    assert summaries([*board(), counter("gpu3", "clocks_hw_thermal", 50)], past) == []  # the driver was loaded anew


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"power_limit": 500.0}, "its power limit is 500 W, the default is 700 W"),
        ({"power_limit": 699.0}, None),
        ({"power_limit": 500.0, "name": "NVIDIA GeForce RTX 4090 Laptop GPU"}, None),
        (
            {"power_limit": 300.0, "power_limit_default": None},
            "its power limit is 300 W, below 693 W; 7 of 8 equal GPUs have 700 W",
        ),
        (
            {"application_clock": 1095e6, "application_clock_default": 1410e6},
            "its application clock is 1,095 MHz, the default is 1,410 MHz",
        ),
        ({"application_clock": 1410e6, "application_clock_default": 1410e6}, None),
        ({"clock_reasons": ("application clocks",), "clock": 1200e6}, None),
    ],
)
def test_limits(fields: dict[str, Any], message: str | None) -> None:
    found = findings(board(**fields))
    assert [(one.code, one.severity, one.message) for one in found] == (
        [("gpu-clocks-limited", "warning", f"GPU gpu3: {message}")] if message else []
    )


def test_a_setting_of_all_gpus_is_one_finding() -> None:
    records = board()
    for number in range(8):
        records = with_fields(records, f"gpu{number}", power_limit=500.0)
    (found,) = findings(records)
    assert (found.subject, found.location, found.message) == (
        "node",
        {},
        "each of the 8 GPUs: its power limit is 500 W, the default is 700 W",
    )
    assert found.steps == (
        "If an operator set this on purpose, silence the finding in the site file.",
        "Set the default power limit of all GPUs: sudo nvidia-smi -pl 700.",
    )


def test_a_clock_that_was_not_set_again() -> None:
    records = board(application_clock=1095e6)
    for number in (0, 1, 2, 4, 5, 6, 7):
        records = with_fields(records, f"gpu{number}", application_clock=1410e6)
    (found,) = findings(records)
    assert (found.code, found.subject, found.confidence, found.basis) == (
        "gpu-clocks-limited",
        address(3),
        "likely",
        "kin",
    )
    assert (found.expected, found.observed, found.unit) == (1410e6, 1095e6, "hertz")
    assert GPU.application_clock is None


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, True),
        ({"clock": 1000e6}, False),
        ({"performance_state": 2}, False),
        ({"clock_reasons": ("idle",)}, False),
        ({"clock_reasons": ("software power cap",)}, False),
        ({"clock_max": None}, False),
        ({"virtualization": "vGPU"}, False),
        ({"application_clock": 1980e6}, True),
        ({"application_clock": 396e6, "application_clock_default": 396e6}, False),
        ({"name": "NVIDIA L40S", "address": None, "application_clock": 2520e6}, True),
        ({"name": "NVIDIA L40S", "address": None}, False),
    ],
)
def test_a_busy_gpu_at_a_low_clock_without_a_reason(fields: dict[str, Any], found: bool) -> None:
    """Also if all GPUs of the node have the same fault."""
    records = board()
    for number in range(8):
        records = with_fields(records, f"gpu{number}", **{"clock": 396e6, "clock_reasons": (), **fields})
    names = [one.subject_name for one in findings(records) if one.code == "gpu-clocks-limited"]
    assert [name and name.split(" (")[0] for name in names] == (
        [f"GPU gpu{number}" for number in range(8)] if found else []
    )
