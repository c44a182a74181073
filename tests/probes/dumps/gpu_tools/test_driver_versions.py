"""The kernel module and the library of NVIDIA's driver have different versions, in the words of many programs."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

MODULE, LIBRARY = "565.57.01", "570.86.15"
MISMATCHES = (
    "Failed to initialize NVML: Driver/library version mismatch",
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
    "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
    "pynvml.nvml.NVMLError_LibRmVersionMismatch",
    "E0611 10:11:12 main.go:41] unable to create plugin: failed to initialize NVML: Driver/library version mismatch",
    '{"level":"error","msg":"nvmlInit returned LIB_RM_VERSION_MISMATCH"}',
    "nvmlInit_v2() = NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    f"kernel version {MODULE} does not match DSO version {LIBRARY} -- cannot find working devices",
)
STATED = (
    f"API mismatch: the client has the version {LIBRARY}, but this kernel module has the version {MODULE}.",
    f"NVRM: API mismatch: the client has the version {LIBRARY}, but\n"
    f"NVRM: this kernel module has the version {MODULE}.",
)
OF_LIBRARY = f"NVML library version: {LIBRARY}\n"
MODULES = (
    f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {MODULE}  Thu Oct 10 12:29:05 UTC 2024\n",
    f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {MODULE}  Release Build  (builder)\n",
)
HEADS = ("", "Mar  3 10:04:11 n7 kubelet[812]: ", "  stderr: ", "| ")


def of_code(text: str) -> list[str]:
    return [one.message for one in report_of(text).findings if one.code == "driver-mismatch"]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("line", [*MISMATCHES, *STATED])
def test_each_wording(line: str, head: str) -> None:
    text = "".join(f"{head}{one}\n" for one in line.split("\n"))
    assert len(of_code(text)) == 1
    assert report_of(text).verdict in ("failed", "degraded")


@pytest.mark.parametrize("of_module", MODULES)
@pytest.mark.parametrize("line", MISMATCHES)
def test_the_versions_beside_it(line: str, of_module: str) -> None:
    for text in (f"{line}\n{OF_LIBRARY}{of_module}", f"{of_module}{line}\n{OF_LIBRARY}"):
        (message,) = of_code(text)
        assert LIBRARY in message
        assert MODULE in message


@pytest.mark.parametrize("line", STATED)
def test_both_versions_of_one_line(line: str) -> None:
    (message,) = of_code(f"{line}\n")
    assert LIBRARY in message
    assert MODULE in message


@pytest.mark.parametrize("text", [OF_LIBRARY, *MODULES, OF_LIBRARY + MODULES[0]])
def test_versions_alone_are_no_fault(text: str) -> None:
    assert found_in(text) == []
    assert report_of(text).verdict == "unknown"


def test_a_mismatch_before_the_driver_was_loaded() -> None:
    loaded = f"[ 4400.100000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {LIBRARY}  Thu Jan 23 22:50:36 UTC 2025\n"
    before = "[ 4300.100000] nvidia-persistenced: Failed to initialize NVML: Driver/library version mismatch\n"
    assert [severity for code, severity, _ in found_in(before + loaded) if code == "driver-mismatch"] == ["info"]
