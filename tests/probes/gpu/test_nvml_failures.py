"""GPUs that refuse, fail, hang or are lost, and drivers that do, from a stub of the driver (nvml_stub.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.calls.child import Children
from linkgauge.probes.gpu.nvml import state
from linkgauge.probes.gpu.nvml_topology import wiring
from tests.support.gpu.nvml_answers import THROTTLED, gpu, of, only, through_a_child


def test_what_one_gpu_would_not_say(driver: Callable[[str], Path]) -> None:
    driver(
        "gpus = 2\n[gpu.1.returns]\nnvmlDeviceGetCurrPcieLinkWidth = 999\nnvmlDeviceGetNvLinkState = 4\n"
        'nvmlDeviceGetComputeRunningProcesses_v3 = 4\n[gpu.1.fields]\n"144" = "error 999"\n"94" = "error 4"\n'
        "[gpu.1.answers]\nnvmlDeviceGetCurrPcieLinkGeneration = 77\nnvmlDeviceGetComputeMode = 9"
    )
    said = list(state())
    why = {lost.what: (lost.subject, lost.why, lost.how) for lost in of(said, NotChecked)}
    assert why == {
        "Gpu.pcie_speed": ("gpu1", "77 is no PCIe generation", None),
        "Gpu.pcie_width": ("gpu1", "Unknown Error", None),
        "Gpu.compute_mode": ("gpu1", "9 is none of 0, 2, 3", None),
        "Gpu.processes": ("gpu1", "Insufficient Permissions", "run as root"),
        "Gpu.remap_pending": ("gpu1", "Unknown Error", None),
        "Gpu.pcie_replay": ("gpu1", "Insufficient Permissions", "run as root"),
        "Gpu.nvlinks": ("gpu1", "link 0: Insufficient Permissions", "run as root"),
    }
    assert of(said, Gpu) == [
        gpu(0),
        replace(
            gpu(1),
            pcie_speed=None,
            pcie_width=None,
            compute_mode=None,
            processes=None,
            remap_pending=None,
            nvlinks=None,
            nvlinks_present=None,
            nvlink_rate=None,
        ),
    ]


def test_numbers_that_are_all_refused(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\n[returns]\nnvmlDeviceGetFieldValues = 999")
    said = list(state())
    wanted = {"remapped_correctable", "remapped_uncorrectable", "remap_pending", "remap_failed", "recovery"}
    lost = {*wanted, "c2c_links", "pcie_replay", *THROTTLED, "nvlink_errors", "nvlink_rx_bytes", "nvlink_tx_bytes"}
    assert of(said, NotChecked) == [
        NotChecked(what=what, subject="gpu0", reason=Reason.LOST, detail="Unknown Error")
        for what in [one.what for one in of(said, NotChecked)]
    ]
    assert {one.what for one in of(said, NotChecked)} == {f"Gpu.{name}" for name in lost}
    assert only(said).ecc_corrected == 0  # by its call


def test_one_gpu_that_gives_nothing_but_errors(driver: Callable[[str], Path]) -> None:
    driver("gpus = 2\nlinks = 0\n[gpu.0.returns]\n'*' = 999\nnvmlDeviceGetHandleByIndex_v2 = 0")
    assert of(list(state()), Gpu)[0] == Gpu(key="gpu0", failure="Unknown Error", failure_reason=Reason.LOST)
    driver("gpus = 2\nlinks = 0\n[gpu.1.returns]\n'*' = 999")
    said = list(state())
    assert of(said, Gpu)[1:] == [Gpu(key="gpu1", failure="Unknown Error", failure_reason=Reason.LOST)]
    assert of(said, NotChecked) == []


def test_a_gpu_that_only_others_may_ask(driver: Callable[[str], Path]) -> None:
    driver("gpus = 2\n[gpu.1.returns]\nnvmlDeviceGetHandleByIndex_v2 = 4")
    said = list(state())
    assert of(said, Gpu) == [gpu(0)]
    how = "run as root"
    assert of(said, NotChecked) == [
        NotChecked(what="Gpu", subject="gpu1", reason=Reason.PERMISSION, detail="Insufficient Permissions", how=how)
    ]


def test_a_gpu_that_is_lost_between_two_calls(driver: Callable[[str], Path]) -> None:
    driver("gpus = 3\n[gpu.1]\nlost_after = 5")
    said = list(state())
    known = {name: getattr(gpu(1), name) for name in ("name", "uuid", "address", "pcie_speed")}
    assert of(said, Gpu) == [
        gpu(0),
        Gpu(key="gpu1", failure="GPU is lost", failure_reason=Reason.LOST, **known),
        gpu(2),
    ]
    assert of(said, NotChecked) == []


@pytest.mark.parametrize("calls", [0, 1, 20, 21, 22, 30, 40, 41, 42, 45, 46])
def test_a_gpu_can_be_lost_at_any_call(driver: Callable[[str], Path], calls: int) -> None:
    driver(f"gpus = 2\n[gpu.0]\nlost_after = {calls}")
    said = list(state())
    failures = [one.failure for one in of(said, Gpu)]
    assert failures == ["GPU is lost" if calls < 46 else None, None]
    assert of(said, NotChecked) == []


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (9, "Driver Not Loaded"),
        (18, "RM has detected an NVML/RM version mismatch."),
        (999, "Unknown Error"),
        (27, "Error 27"),
    ],
)
def test_a_driver_that_fails(driver: Callable[[str], Path], error: int, failure: str) -> None:
    driver(f"[returns]\nnvmlInitWithFlags = {error}")
    reason = Reason.LOST if error == 999 else Reason.DRIVER
    assert list(state()) == [Driver(key="nvidia", failure=failure, failure_reason=reason)]
    assert list(wiring()) == [NotChecked(what="GpuPair", subject="node", reason=reason, detail=failure)]


@pytest.mark.parametrize(
    ("text", "why", "how"),
    [
        (
            "[returns]\nnvmlInitWithFlags = 12",
            "NVML Shared Library Not Found",
            "install the driver's libnvidia-ml.so.1",
        ),
        ("[returns]\nnvmlInitWithFlags = 4", "Insufficient Permissions", "run as root"),
        (
            "device = '/nowhere/nvidiactl'\n[returns]\nnvmlInitWithFlags = 9",
            "Driver Not Loaded: /nowhere/nvidiactl: No such file or directory",
            "run as root",
        ),
    ],
)
def test_what_is_our_own_lack_is_not_the_drivers_fault(
    driver: Callable[[str], Path], text: str, why: str, how: str
) -> None:
    driver(text)
    how = f"{how}; in a container, give it the GPUs (--gpus all)"
    reason = Reason.PERMISSION if how.startswith("run as root") and "/" not in why else Reason.NOT_INSTALLED
    assert list(state()) == [NotChecked(what="Gpu", subject="node", reason=reason, detail=why, how=how)]
    assert list(wiring()) == [NotChecked(what="GpuPair", subject="node", reason=reason, detail=why, how=how)]


def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ModuleNotFoundError(\"No module named 'pynvml'\")")
    script = tmp_path / "child.py"
    script.write_text("from linkgauge.probes.calls.entrypoint import main\nmain()")
    why, how = "No module named 'pynvml'", "install the package nvidia-ml-py"
    said = list(Children((sys.executable, str(script))).call("nvml", [], 60))
    assert said == [NotChecked(what="Gpu", subject="node", reason=Reason.NOT_INSTALLED, detail=why, how=how)]


def test_a_driver_that_hangs(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    driver("[returns]\nnvmlInitWithFlags = 'hang'")
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "0.1")
    assert list(state()) == [Driver(key="nvidia", failure="no answer within 0.1 s", failure_reason=Reason.NO_ANSWER)]


def test_one_gpu_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other GPUs are read, earlier records stay, and the process ends although one of its threads hangs."""
    file = tmp_path / "driver.toml"
    file.write_text("gpus = 3\n[gpu.1.returns]\nnvmlDeviceGetCurrPcieLinkGeneration = 'hang'")
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "7.5")
    said = through_a_child(file, monkeypatch)
    known = {name: getattr(gpu(1), name) for name in ("name", "uuid", "address")}
    assert of(said, Gpu) == [
        gpu(0),
        Gpu(key="gpu1", failure="no answer within 1.5 s", failure_reason=Reason.NO_ANSWER, **known),
        gpu(2),
    ]
    assert of(said, NotChecked) == []
