"""Answers of NVIDIA's driver for healthy GPUs, and functions that call the stub, for tests."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink
from linkgauge.models.facts.records import Observation, Record
from linkgauge.probes.calls.child import Children
from tests.support.gpu import nvml_stub

STUB = Path(nvml_stub.__file__)
DRIVER = Driver(key="nvidia", library="580.95.05", nvml="13.580.95.05", cuda="13.0", gpus=8)
MIB = 1 << 20
THROTTLED = ("clocks_sw_power", "clocks_sw_thermal", "clocks_hw_thermal", "clocks_hw_power_brake")
AT_REST = Gpu(
    key="",
    name="NVIDIA H100 80GB HBM3",
    recovery="none",
    pcie_speed=32e9,
    pcie_width=16,
    pcie_max_speed=32e9,
    pcie_max_width=16,
    performance_state=0,
    clock=345e6,
    memory_clock=2619e6,
    application_clock=1980e6,
    clock_reasons=("idle",),
    power=70.5,
    power_limit=700.0,
    power_limit_default=700.0,
    temperature=34.0,
    memory=81559 * MIB,
    memory_used=MIB,
    ecc=True,
    ecc_pending=True,
    ecc_corrected=0,
    ecc_uncorrected=0,
    ecc_corrected_lifetime=0,
    ecc_uncorrected_lifetime=0,
    sram_threshold=False,
    sram_uncorrected=0,
    remapped_correctable=0,
    remapped_uncorrectable=0,
    remap_pending=False,
    remap_failed=False,
    nvlinks=18,
    nvlinks_present=18,
    nvlink_rate=25e9,
    fabric_state="completed",
    fabric_status="Success",
    fabric_clique=0,
    mig=False,
    mig_instances=0,
    persistence=True,
    compute_mode="default",
    processes=0,
)


def gpu(number: int = 0) -> Gpu:
    """A healthy H100 at rest."""
    return replace(
        AT_REST,
        key=f"gpu{number}",
        uuid=f"GPU-a1b2c3d4-0000-1111-2222-00000000000{number}",
        address=f"0000:{nvml_stub.BUSES[number]:02x}:00.0",
    )


def nvlink(gpu: int, link: int, active: bool = True) -> GpuLink:
    return GpuLink(
        key=f"gpu{gpu}/nvlink{link}",
        gpu=f"gpu{gpu}",
        kind="nvlink",
        active=active,
        version=4 if active else None,
        speed=26.562e9 if active else None,
    )


def facts(records: list[Record]) -> list[Record]:
    return [one for one in records if not isinstance(one, Observation)]


def of(records: list[Record], kind: type[Record]) -> list[Any]:
    return [one for one in records if isinstance(one, kind)]


def only(records: list[Record]) -> Gpu:
    (one,) = of(records, Gpu)
    assert isinstance(one, Gpu)
    return one


def seen(records: list[Record]) -> dict[tuple[str, str], float]:
    return {(str(one.about), one.quantity): one.value for one in of(records, Observation)}


def through_a_child(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str = "nvml", seconds: float = 60
) -> list[Record]:
    monkeypatch.setenv("NVML_STUB", str(file))
    return list(Children((sys.executable, str(STUB))).call(call, [], seconds))


def called(file: Path) -> Counter[str]:
    return Counter(Path(f"{file}.log").read_text().split())
