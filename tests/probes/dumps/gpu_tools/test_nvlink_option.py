"""The option of NVIDIA's driver that switches NVLink off: in force, in a file, on the command line of the kernel."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.machine import Setting
from linkgauge.probes.system.settings import read_settings
from tests.support.nodes.trees import tree
from tests.support.texts import report_of

UUID = "GPU-0a0b0c0d-1111-2222-3333-44444444444"
NO_LINKS = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
UP = "".join(f"\t Link {number}: 26.562 GB/s\n" for number in range(18))
OPTIONS = (
    "ResmanDebugLevel: 4294967295\nNvLinkDisable: {}\nRmProfilingAdminOnly: 1\n",
    "$ cat /proc/driver/nvidia/params\nInitializeSystemMemoryAllocations: 1\nNvLinkDisable: {}\n",
    "options nvidia NVreg_NvLinkDisable={}\n",
    "/etc/modprobe.d/gpu.conf:options nvidia NVreg_OpenRmEnableUnsupportedGpus=1 NVreg_NvLinkDisable={}\n",
    "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-6.8 root=/dev/md0 ro nvidia.NVreg_NvLinkDisable={} quiet\n",
    "[    0.000000] Command line: BOOT_IMAGE=/vmlinuz-6.8 ro nvidia.NVreg_NvLinkDisable={}\n",
)
ADVICE = (
    "# options nvidia NVreg_NvLinkDisable=1\n",
    "You should add options nvidia NVreg_NvLinkDisable=1 to a file in /etc/modprobe.d.\n",
    "Add nvidia.NVreg_NvLinkDisable=1 to the kernel command line.\n",
)


def gpus(name: str, number: int, below: str = "") -> str:
    return "".join(f"GPU {one}: {name} (UUID: {UUID}{one})\n{below}" for one in range(number))


def of_links(text: str) -> list[tuple[str, str]]:
    return [(one.severity, one.subject) for one in report_of(text).findings if one.code == "nvlink-inactive"]


@pytest.mark.parametrize("option", OPTIONS)
def test_gpus_whose_links_were_not_read(option: str) -> None:
    listed = gpus("NVIDIA H100 80GB HBM3", 8)
    assert of_links(listed + "\n" + option.format(1)) == [("critical", "node")]
    assert report_of(listed + "\n" + option.format(1)).verdict == "failed"


@pytest.mark.parametrize("option", OPTIONS)
def test_the_option_is_the_cause_of_inactive_links(option: str) -> None:
    report = report_of(gpus("NVIDIA H100 80GB HBM3", 4, NO_LINKS) + "\n" + option.format(1))
    found = [one for one in report.findings if one.code == "nvlink-inactive"]
    assert {one.subject for one in found} == {"gpu0", "gpu1", "gpu2", "gpu3"}
    assert all("NvLinkDisable" in (one.cause or "") for one in found)


@pytest.mark.parametrize("option", OPTIONS)
def test_the_option_without_a_gpu(option: str) -> None:
    assert of_links(option.format(1)) == [("info", "node")]
    assert report_of(option.format(1)).verdict == "unknown"


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    "listed",
    [
        "",
        gpus("NVIDIA H100 80GB HBM3", 8),
        gpus("NVIDIA A100-PCIE-40GB", 4),
    ],
)
def test_an_option_that_is_off_shows_nothing(listed: str, option: str) -> None:
    report = report_of(f"{listed}\n{option.format(0)}")
    assert [one.code for one in report.findings] == []
    assert report.verdict == "unknown"


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    "listed",
    [
        gpus("NVIDIA A100-PCIE-40GB", 4),  # no bridge, or another
        gpus("NVIDIA L40S", 8),
        gpus("NVIDIA H100 80GB HBM3", 1),  # a guest with one GPU
        gpus("NVIDIA H100 80GB HBM3", 8, UP),  # not in force
    ],
)
def test_machines_that_lose_nothing(listed: str, option: str) -> None:
    assert of_links(listed + "\n" + option.format(1)) == []


@pytest.mark.parametrize("advice", ADVICE)
def test_advice_is_no_option(advice: str) -> None:
    assert of_links(gpus("NVIDIA H100 80GB HBM3", 8) + "\n" + advice) == []


def test_what_is_in_force_counts_more_than_a_file() -> None:
    text = "options nvidia NVreg_NvLinkDisable=1\n\nResmanDebugLevel: 4294967295\nNvLinkDisable: 0\n"
    assert of_links(gpus("NVIDIA H100 80GB HBM3", 8) + "\n" + text) == []


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_option_of_a_live_machine(value: str) -> None:
    files = {"proc/driver/nvidia/params": f"ResmanDebugLevel: 4294967295\nNvLinkDisable: {value}\nDeviceFileUID: 0\n"}
    (seen,) = [one for one in read_settings(tree(files)) if isinstance(one, Setting) and one.key == "nvlink_disable"]
    assert seen.value == value
