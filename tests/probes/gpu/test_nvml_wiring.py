"""Values of GPUs that stay until a reset, from a stub of NVIDIA's driver (nvml_stub.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linkgauge.models.facts.gpu import Gpu, GpuLink, GpuPair
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.gpu.nvml_topology import wiring
from tests.support.gpu import nvml_stub
from tests.support.gpu.nvml_answers import MIB, called, of


def test_what_lasts_until_a_reset(driver: Callable[[str], Path]) -> None:
    file = driver("")
    said = list(wiring())
    assert of(said, Gpu) == [
        Gpu(
            key=f"gpu{number}",
            board_part="692-2G520-0200-000",
            module_id=number + 1,
            vbios="96.00.99.00.01",
            virtualization="none",
            pcie_own_max_speed=32e9,
            clock_max=1980e6,
            memory_clock_max=2619e6,
            application_clock_default=1980e6,
            bar1=131072 * MIB,
            numa=number // 4,
            cpus=tuple(range(64 * (number // 4), 64 * (number // 4) + 16)),
        )
        for number in range(8)
    ]
    assert of(said, GpuLink) == [
        GpuLink(key=f"gpu{number}/nvlink{link}", remote=f"0000:0{5 + link % 4}:00.0", remote_kind="switch")
        for number in range(8)
        for link in range(18)
    ]
    ok: dict[str, Any] = dict.fromkeys(("read", "write", "nvlink", "atomics"), "ok")
    assert of(said, GpuPair) == [
        GpuPair(key=f"gpu{a}-gpu{b}", a=f"gpu{a}", b=f"gpu{b}", **ok, path="NODE" if a // 4 == b // 4 else "SYS")
        for a in range(8)
        for b in range(a + 1, 8)
    ]
    assert of(said, NotChecked) == []
    assert called(file)["nvmlDeviceGetPcieThroughput"] == 0


def test_switches_that_are_not_shown(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for nothing in ("FFFFFFFF:FF:FF.0", "00000000:00:00.0", "none"):

        def shown(*given: Any, text: str = nothing) -> int:
            return nvml_stub.fill(given[-1]._obj, busId=text.encode())

        monkeypatch.setitem(nvml_stub.FUNCTIONS, "nvmlDeviceGetNvLinkRemotePciInfo_v2", shown)
        driver("gpus = 1\nlinks = 1")
        assert of(list(wiring()), GpuLink) == [GpuLink(key="gpu0/nvlink0", remote_kind="switch")]


def test_pairs_of_a_gpu_that_hangs_or_is_lost(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "5")
    driver("gpus = 4\nlinks = 0\n[gpu.0.returns]\nnvmlDeviceGetP2PStatus = 'hang'\n[gpu.2.returns]\n'*' = 15")
    said = list(wiring())
    late, lost = "no answer within 1 s", "GPU is lost"
    assert [pair.key for pair in of(said, GpuPair)] == ["gpu1-gpu3"]
    assert of(said, NotChecked) == [
        NotChecked(what="GpuLink.remote", subject="gpu2", reason=Reason.LOST, detail=lost),
        NotChecked(what="GpuPair", subject="gpu2", reason=Reason.LOST, detail=lost),
        NotChecked(what="GpuPair", subject="gpu0-gpu1", reason=Reason.NO_ANSWER, detail=late),
        NotChecked(what="GpuPair", subject="gpu0-gpu3", reason=Reason.NO_ANSWER, detail=late),
    ]
