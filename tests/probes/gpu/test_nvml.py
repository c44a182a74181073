"""The state of GPUs from NVIDIA's driver, through pynvml and a stub of the driver (nvml_stub.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.gpu.nvml import state
from linkgauge.probes.gpu.nvml_topology import wiring
from tests.support.gpu.nvml_answers import (
    DRIVER,
    THROTTLED,
    called,
    facts,
    gpu,
    nvlink,
    of,
    only,
    seen,
    through_a_child,
)

MOST_CALLS = 400  # of one look at 8 GPUs with 18 NVLinks each
COUNTERS = ("pcie_replay", "ecc_corrected", "ecc_uncorrected", "nvlink_replay", "nvlink_recovery", "nvlink_crc")


def test_eight_healthy_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "driver.toml"
    file.write_text("")
    said = through_a_child(file, monkeypatch)
    expected = [one for number in range(8) for one in (gpu(number), *(nvlink(number, link) for link in range(18)))]
    assert facts(said) == [DRIVER, *expected]
    calls = called(file)
    counted = {(f"gpu{number}", name): 0.0 for number in range(8) for name in ("processes", *COUNTERS, *THROTTLED)}
    assert seen(said) == {**counted, ("nvidia", "driver_calls"): calls.total()}
    assert calls.total() <= MOST_CALLS
    assert "nvmlDeviceGetPcieThroughput" not in calls


def test_eight_busy_gpus_take_no_more_calls_than_they_may(driver: Callable[[str], Path]) -> None:
    file = driver("processes = [5012, 5012, 5013]")
    said = list(state())
    assert [one.processes for one in of(said, Gpu)] == [2] * 8
    assert seen(said)["nvidia", "driver_calls"] == called(file).total() <= MOST_CALLS


def test_faults_that_come_while_it_runs(driver: Callable[[str], Path]) -> None:
    file = driver("gpus = 1")
    before = list(state())
    file.write_text(
        "gpus = 1\ndown = [7]\nsram = 1\nfabric = {state = 2, health = 0}\n"
        "[answers]\nnvmlDeviceGetCurrPcieLinkWidth = 8\nnvmlDeviceGetCurrentClocksEventReasons = 0xC8\n"
        '[fields]\n"94" = 12\n"4" = 1\n"144" = 1\n"230" = 1\n"270" = 2_500_000_000\n"161.3" = 40\n"163.3" = 2\n'
    )
    now = list(state())
    (was, is_now) = only(before), only(now)
    assert was == gpu()
    assert is_now == replace(
        was,
        nvlinks=17,
        pcie_width=8,
        sram_threshold=True,
        ecc_uncorrected=1,
        remap_pending=True,
        recovery="GPU reset",
        clock_reasons=("hardware slowdown", "hardware thermal slowdown", "hardware power brake"),
        fabric_state="in progress",
        fabric_status=None,
        fabric_clique=None,
    )
    assert of(now, GpuLink) == [nvlink(0, link, active=link != 7) for link in range(18)]
    changed = {name: value for name, value in seen(now).items() if value != seen(before).get(name)}
    assert changed == {
        ("gpu0", "pcie_replay"): 12,
        ("gpu0", "ecc_uncorrected"): 1,
        ("gpu0", "clocks_hw_thermal"): 2.5,
        ("gpu0", "nvlink_replay"): 40,
        ("gpu0/nvlink3", "nvlink_replay"): 40,
        ("gpu0", "nvlink_crc"): 2,
        ("gpu0/nvlink3", "nvlink_crc"): 2,
    }
    assert of(now, NotChecked) == []


def test_a_gpu_cut_into_instances(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nmig = 1\ninstances = [0, 1, 4]")
    assert only(list(state())) == replace(gpu(), mig=True, mig_instances=3)


def test_an_old_driver(driver: Callable[[str], Path]) -> None:
    """Functions and fields that it lacks give no error. Older functions replace them."""
    newer = (
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetSramEccErrorStatus",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetModuleId",
        "nvmlDeviceGetMemoryAffinity",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
    )
    unknown = "\n".join(f'"{number}" = "error 2"' for number in (*range(1, 7), 142, 143, 144, 145, 186, 189, 190, 230))
    driver(f"gpus = 2\nprocesses = [77]\nrows = [2, 1, 1, 0]\nmissing = {list(newer)}\n[fields]\n{unknown}")
    said = list(state())
    assert of(said, Gpu)[0] == replace(
        gpu(),
        recovery=None,
        sram_threshold=None,
        sram_uncorrected=None,
        remapped_correctable=2,
        remapped_uncorrectable=1,
        remap_pending=True,
        remap_failed=False,
        full_banks=0,
        fabric_state=None,
        fabric_status=None,
        fabric_clique=None,
        mig=None,
        mig_instances=None,
        processes=1,
    )
    lasting = list(wiring())
    assert (of(lasting, Gpu)[0].module_id, of(lasting, Gpu)[0].numa) == (None, None)
    assert of(lasting, GpuLink)[0] == GpuLink(key="gpu0/nvlink0", remote="0000:05:00.0")
    assert of([*said, *lasting], NotChecked) == []


def test_an_older_package(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetSramEccErrorStatus", "NVMLLibraryMismatchError"):
        monkeypatch.delattr(pynvml, name, raising=False)
    pages = "[returns]\nnvmlDeviceGetRemappedRows = 3\n[answers]\nnvmlDeviceGetRetiredPagesPendingStatus = 1"
    driver(f'gpus = 1\n[fields]\n"144" = "error 3"\n{pages}')
    older = replace(gpu(), sram_threshold=None, sram_uncorrected=None, remap_pending=True)  # an older GPU, too
    assert facts(list(state()))[1] == older


def test_no_gpus(driver: Callable[[str], Path]) -> None:
    driver("gpus = 0")
    assert facts(list(state())) == [replace(DRIVER, gpus=0)]
    assert list(wiring()) == []
