"""Texts of nvidia-smi with values that could not be read, with single lines, and with a load that explains a clock."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

ROWS = "    Remapped Rows\n        Pending : No\n        Remapping Failure Occurred : No\n"
LOAD = "    Utilization\n        GPU : 100 %\n        Memory : 30 %\n"
CLOCKS = "    Clocks\n        Graphics : {0} MHz\n        SM : {0} MHz\n    Max Clocks\n        SM : 1980 MHz\n"
POWER = "    GPU Power Readings\n        Power Draw : {}.00 W\n        Current Power Limit : 700.00 W\n"
LINK = "    GPU Link Info\n        PCIe Generation\n            Max : 5\n            Current : 1\n"
SCRUBS = "    Persistence Mode : Disabled\n    ECC Mode\n        Current : Enabled\n        Pending : Enabled\n"
SOFTWARE = "    Clocks Event Reasons\n        Idle : {}\n        SW Thermal Slowdown : Active\n"


@pytest.mark.parametrize("form", ["{}", "[{}]"])
@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("Insufficient Permissions", "unknown"),
        ("GPU access blocked by the operating system", "unknown"),
        ("access blocked", "unknown"),
        ("Unknown Error", "unknown"),
        ("ERR!", "unknown"),
        ("Timeout", "unknown"),
        ("GPU requires reset", "failed"),
        ("GPU is lost", "failed"),
        ("N/A", "ok"),
        ("Not Supported", "ok"),
    ],
)
def test_values_that_could_not_be_read(error: str, verdict: str, form: str) -> None:
    """Whatever the field is: no rule reads the speed of the fan."""
    value = form.format(error)
    assert report_of(f"{ROWS}    Fan Speed : {value}\n").verdict == verdict
    assert report_of(f"index, remapped_rows.pending, fan.speed [%]\n0, No, {value}\n").verdict == verdict
    rows = "<remapped_rows>\n<remapped_row_pending>No</remapped_row_pending>\n</remapped_rows>\n"
    inner = f"<gpu>\n<fan_speed>{value}</fan_speed>\n{rows}</gpu>\n"
    assert report_of(f"<nvidia_smi_log>\n{inner}</nvidia_smi_log>\n").verdict == verdict


def test_refused_values_are_one_gap() -> None:
    report = report_of(f"{ROWS}    Fan Speed : ERR!\n    Display Active : Unknown Error\n")
    whys = [one.why for one in report.not_checked]
    assert whys == ["text:4: the driver gives an error instead of a value: Fan Speed, and 1 more"]


def test_names_of_processes_of_others_are_always_refused() -> None:
    process = "    Processes\n        Process ID : 7\n            Name : [Insufficient Permissions]\n"
    assert report_of(ROWS + process).verdict == "ok"


@pytest.mark.parametrize(
    ("text", "verdict", "findings"),
    [
        ("        Channel Repair Pending : Yes\n", "failed", [("gpu-row-remap", "critical", "gpu")]),
        ("TPC Repair Pending : Yes\n", "failed", [("gpu-row-remap", "critical", "gpu")]),
        ("Unrepairable Memory : Yes\n", "failed", [("gpu-row-remap", "critical", "gpu")]),
        ("GPU Current Temp : 96 C\nGPU Slowdown Temp : 89 C\n", "degraded", [("gpu-throttled", "warning", "gpu")]),
        (SOFTWARE.format("Not Active"), "unknown", [("gpu-throttled", "info", "gpu")]),
        (SOFTWARE.format("Not Active") + CLOCKS.format(1755), "ok", [("gpu-throttled", "info", "gpu")]),
        (SOFTWARE.format("Not Active") + CLOCKS.format(600), "degraded", [("gpu-throttled", "warning", "gpu")]),
        (LOAD + CLOCKS.format(345), "degraded", [("gpu-clocks-limited", "warning", "gpu")]),
        (LOAD + CLOCKS.format(345) + POWER.format(120), "degraded", [("gpu-clocks-limited", "warning", "gpu")]),
        (LOAD + CLOCKS.format(700) + POWER.format(690), "ok", []),  # at its power limit
        (LOAD + CLOCKS.format(700), "unknown", []),  # may be at its power limit
        (LOAD + LINK, "degraded", [("pcie-link-slow", "warning", "gpu")]),
        # A driver that loads for each query scrubs the memory, which counts as load.
        (SCRUBS + LOAD + CLOCKS.format(345), "ok", []),
        (SCRUBS + LOAD + LINK, "ok", []),
    ],
)
def test_lines_of_one_gpu(text: str, verdict: str, findings: list[tuple[str, str, str]]) -> None:
    assert (found_in(text), report_of(text).verdict) == (findings, verdict)


@pytest.mark.parametrize(
    "text",
    [
        "    GPU Power Readings\n        Current Power Limit : 700.00 W\n",
        "    Max Clocks\n        SM : 1980 MHz\n",
        "Driver Version                            : 590.48.01\nAttached GPUs                             : 8\n",
        "NVIDIA-SMI has failed because you are not:\n\ta) running as an administrator or\n",
    ],
)
def test_texts_that_show_too_little(text: str) -> None:
    assert (found_in(text), report_of(text).verdict) == ([], "unknown")
