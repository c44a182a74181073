"""What a text says of the IOMMU (host/iommu.py)."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in

SAID = (
    "iommu: Default domain type: Translated",
    "iommu: Default domain type: Translated (set via kernel command line)",
    "Default domain type: Translated",
    "iommu: DMA domain TLB invalidation policy: strict mode",
    "iommu: DMA domain TLB invalidation policy: lazy mode (set via kernel command line)",
)
FRAMES = (
    "{}",
    "[    0.412345] {}",
    "Mar  3 10:11:12 n1 kernel: {}",
    "The kernel logs `{}` on this node.",
    '- Kernel log: "{}"',
    "| log | `{}` |",
    "> {}",
)
PARAMETERS = ("iommu.passthrough=0", "iommu=nopt")
COMMANDS = (
    "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro {} quiet",
    "`/proc/cmdline` ends with `{} iommu.strict=1`.",
    "[    0.000000] Kernel command line: BOOT_IMAGE=/vmlinuz root=/dev/sda1 {}",
    "The kernel command line has {}",
)
INFORMED = [("iommu-translation", "info", "node")]
GPUS = "".join(f"GPU {n}: NVIDIA L40S (UUID: GPU-{n}c5a2f9e-3b1d-4b7a-9d55-0a1b2c3d4e5f)\n" for n in range(2))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("said", SAID)
def test_the_log(said: str, frame: str) -> None:
    assert found_in(frame.format(said) + "\n") == INFORMED


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_the_command_line(parameter: str, command: str) -> None:
    assert found_in(command.format(parameter) + "\n") == INFORMED


def test_beside_gpus_that_send_each_other_data_over_pcie() -> None:
    assert found_in(f"{SAID[0]}\n```\n{GPUS}```\n") == [("iommu-translation", "warning", "node")]


@pytest.mark.parametrize(
    "text",
    [
        "iommu: Default domain type: Passthrough (set via kernel command line)",
        "`cat /proc/cmdline` shows `iommu=pt`.",
        "If dmesg shows `iommu: Default domain type: Translated`, add `iommu=pt` to the kernel command line.",
        "You should set `iommu.passthrough=0` on the kernel command line for VFIO.",
        'GRUB_CMDLINE_LINUX="iommu=nopt quiet"',
        "iommu.passthrough=0 means that DMA is translated",
        "[ 0.4] iommu: Default domain type: Translated\n[ 0.4] iommu: Default domain type: Passthrough",
        f"[    0.000000] Linux version 6.8.0-40-generic (x) #40 SMP\n[    0.400000] {SAID[0]}",  # a laptop
        f"iommu: Default domain type: Passthrough\n```\n{GPUS}```",
    ],
)
def test_texts_without_a_finding(text: str) -> None:
    assert found_in(f"{text}\n") == []
