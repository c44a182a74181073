"""Parts of `nvidia-smi -q` that people paste: a section, a few lines, one GPU of eight."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

GPU = "GPU 00000000:1B:00.0\n    Product Name : NVIDIA A100-SXM4-80GB\n"
BUSY = "    Performance State : P0\n    Utilization\n        Gpu : {busy} %\n"
LINK = (
    "    PCI\n        GPU Link Info\n            PCIe Generation\n"
    "                Max : 4\n                Current : {}\n"
)
CLOCKS = "    Clocks\n        SM : {} MHz\n    Max Clocks\n        SM : 1410 MHz\n"
REASONS = "    Clocks Event Reasons\n        Idle : {}\n        SW Power Cap : Not Active\n        HW Slowdown : {}\n"
TEMPERATURES = "    Temperature\n        GPU Current Temp : {} C\n        GPU Slowdown Temp : 89 C\n"
MARGINS = "    Temperature\n        GPU T.Limit Temp : {} C\n        GPU Slowdown T.Limit Temp : -2 C\n"
REPAIR = (
    "    ECC Errors\n        Channel Repair Pending : {}\n"
    "        TPC Repair Pending : {}\n        Unrepairable Memory : {}\n"
)
THROTTLED, LIMITED, SLOW, ROW = "gpu-throttled", "gpu-clocks-limited", "pcie-link-slow", "gpu-row-remap"


def diagnosed(tmp_path: Path, text: str) -> dict[str, Any]:
    (tmp_path / "smi.txt").write_text(text)
    asked = ["diagnose", "--from", str(tmp_path / "smi.txt"), "--format", "json"]
    return dict(json.loads(CliRunner().invoke(main, asked).output))


@pytest.mark.parametrize(
    ("text", "verdict", "codes"),
    [
        (BUSY.format(busy=99) + LINK.format(1), "degraded", [SLOW]),
        (BUSY.format(busy=0) + LINK.format(1), "unknown", []),  # an idle link slows down
        (BUSY.format(busy=100) + CLOCKS.format(345), "degraded", [LIMITED]),
        (BUSY.format(busy=100) + CLOCKS.format(1400), "ok", []),
        (BUSY.format(busy=3) + CLOCKS.format(345), "ok", []),
        (REASONS.format("Not Active", "Active"), "degraded", [THROTTLED]),
        (REASONS.format("Active", "Active"), "ok", []),  # for a moment, while clocks change
        (REASONS.format("Not Active", "Not Active"), "unknown", []),  # the reasons below are missing
        (TEMPERATURES.format(96), "degraded", [THROTTLED]),
        (TEMPERATURES.format(61), "ok", []),
        (MARGINS.format(-3), "degraded", [THROTTLED]),
        (MARGINS.format(51), "ok", []),
        (REPAIR.format("Yes", "No", "No"), "failed", [ROW]),
        (REPAIR.format("No", "Yes", "No"), "failed", [ROW]),
        (REPAIR.format("No", "No", "Yes"), "failed", [ROW]),
        (REPAIR.format("No", "No", "No"), "ok", []),
        ("    Persistence Mode : Enabled\n", "unknown", []),  # nothing is expected of it
        ("    Persistence Mode : Disabled\n", "unknown", []),
        ("    Compute Mode : Prohibited\n", "failed", ["gpu-mode"]),
    ],
)
def test_a_section_of_one_gpu(tmp_path: Path, text: str, verdict: str, codes: list[str]) -> None:
    found = diagnosed(tmp_path, GPU + text)
    assert ([one["code"] for one in found["findings"]], found["verdict"]) == (codes, verdict)


@pytest.mark.parametrize(("attached", "verdict"), [(1, "ok"), (2, "unknown"), (8, "unknown")])
def test_a_text_with_fewer_gpus_than_it_counts_is_not_ok(tmp_path: Path, attached: int, verdict: str) -> None:
    found = diagnosed(
        tmp_path, f"Attached GPUs                             : {attached}\n{GPU}" + TEMPERATURES.format(61)
    )
    assert (found["findings"], found["verdict"]) == ([], verdict)
    reasons = [one["why"] for one in found["not_checked"]]
    assert any(f"shows 1 of the {attached} GPUs" in why for why in reasons) == (attached > 1)


def test_a_virtual_machine_without_pci_functions_is_not_judged(tmp_path: Path) -> None:
    text = "Architecture: x86_64\nCPU(s): 16\nModel name: Intel(R) Xeon(R) Processor\nHypervisor vendor: KVM\n"
    found = diagnosed(tmp_path, text + "Virtualization type: full\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-15\n")
    assert (found["verdict"], found["checks"]) == ("unknown", {})
