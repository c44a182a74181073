"""Pairs of recorded machines beside lists that were made by hand from the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linkgauge.agent.inputs import resolve
from linkgauge.agent.inputs.site_file import site
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.exporters.commands.compare import as_text
from linkgauge.models.comparison.differences import compare
from linkgauge.models.comparison.side import Side, of_snapshot
from tests.support.paths import SHARED

DATA = SHARED / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")

_SMI, _XML = "outputs/nvidia-smi-capture/linux-x86_64__nvidia-", "outputs/nvidia-smi-xml/"
PAIRS = {
    "capture": ((f"{_SMI}l40s__595.80.txt",), (f"{_SMI}h100-80gb-hbm3__590.48.01.txt",)),
    "nvlink": (
        (
            "outputs/topo-m/simllm_perlmutter_a100_4x.topo-m.txt",
            "outputs/nvlink/simllm_perlmutter_a100_4x.nvlink-s.txt",
        ),
        ("outputs/topo-m/simllm_vastai_h200_8x.topo-m.txt", "outputs/nvlink/simllm_vastai_h200_8x.nvlink-s.txt"),
    ),
    "xml": ((f"{_XML}a10g.xml",), (f"{_XML}a100-sxm4-v12.xml",)),
    "nccl": (("nccl_topo/aws_p4d-24xl-topo.xml",), ("nccl_topo/azure_ndv4-topo.xml",)),
    "rocm": (("outputs/rocm-smi/mi100_rocm602.json",), ("outputs/rocm-smi/vega-20-WKS-GL-XE.json",)),
}
# Regular expressions of lines.
BY_HAND = {
    "capture": [
        "gpu0: product NVIDIA L40S -> NVIDIA H100",
        "gpu0: memory 48.3 GB -> 85.5 GB",
        "gpu0: BAR 1 68.7 GB -> 137 GB",
        "gpu0: fastest PCIe 16 GT/s -> 32 GT/s",
        "gpu0: power limit 350 watts -> 700 watts",
        "gpu0: persistence mode no -> yes",
        "gpu0: VBIOS 95.02.66.00.02 -> 96.00.A5.00.01",
        "driver 595.80 -> 590.48.01",
        "CUDA of the driver 13.2 -> 13.1",
    ],
    "nvlink": [
        r"only in B: GPU gpu4, gpu5, gpu6, gpu7 \(NVIDIA H200\)",
        "gpu0, gpu1, gpu2, gpu3: active NVLinks 12 links -> 18 links",
        "gpu0, gpu1, gpu2, gpu3: product NVIDIA A100-SXM4-40GB -> NVIDIA H200",
    ],
    "xml": [
        "A10G",
        "A100-SXM4-80GB",
        "only in A: pcie-link-narrow 0000:00:1e.0 runs on x8 of x16",
        "driver 515.105.01 -> 535.54.03",
        "CUDA of the driver 11.7 -> 12.2",
        "verdict ok -> unknown",  # B counts four GPUs and shows one
    ],
    "nccl": [
        "only in A: NIC 0000:10:1b.0, 0000:20:1b.0, 0000:90:1b.0, 0000:a0:1b.0",
        "only in B: NIC 0101:00:00.0, .* 0108:00:00.0",
        "only in B: NUMA node numa2, numa3",
        "fastest PCIe 8 GT/s -> 16 GT/s",
        "vendor GenuineIntel -> AuthenticAMD",
    ],
    "rocm": [
        "only in B: GPU gpu4, gpu5, gpu6, gpu7",
        "gpu0: product .*MI100.* -> .*MI50",
        "gpu0: VBIOS 113-D3431401-101 -> 113-D1631700-111",
        "driver 6.3.6 -> 5.9.17",
    ],
}
# The lists have these differences too, and the comparison does not show them.
NOT_SHOWN = {
    "nvlink": ["only in B: NIC", "rate of one NVLink", "NUMA node"],  # nvidia-smi topo -m is no list of NICs
    "xml": ["memory", "PCIe width"],  # B has one of four GPUs, and its number is not known
    "rocm": ["power limit"],  # the reader does not read it
}
# What the comparison shows besides; all of it is true.
FURTHER = ["machine type", "board part", "clock", "driver library", "fastest PCIe in this machine"]


# A recorded machine, its changes (regular expressions and what replaces them), and all lines of the comparison, which
# were written down before it ran. An expression begins at the start of a device, and ends at its first match.
CHANGES = {
    "lspci": (
        "outputs/lspci/gpud_lspci-vvv.txt",
        [
            (r"(?ms)^dc:00\.0 .*?(?=^[0-9a-f]{2}:)", ""),
            (r"(?ms)(^cb:00\.0 .*?LnkSta:\tSpeed 32GT/s \(ok\), Width )x16 \(ok\)", r"\1x8 (downgraded)"),
            (r"(?ms)(^4b:00\.0 .*?LnkSta:\tSpeed )16GT/s \(ok\)", r"\g<1>8GT/s (downgraded)"),
        ],
        [
            "verdict ok -> failed",
            "only in A: NIC 0000:dc:00.0",
            "0000:4b:00.0: PCIe speed 16 GT/s -> 8 GT/s",
            "0000:cb:00.0: PCIe width 16 lanes -> 8 lanes",
            "only in B: pcie-link-narrow .*cb:00.0.* x8 of x16",
            "only in B: storage-link-slow .*4b:00.0.* 8 GT/s of 16 GT/s",
        ],
    ),
    "nvlink": (
        "outputs/nvlink/gpud_nvlink_status.a100",
        [(r"(?ms)(^GPU 3.*?Link 5: )25 GB/s", r"\1<inactive>"), (r"(?ms)^GPU 6.*?(?=^GPU 7)", "")],
        [
            "verdict ok -> failed",
            "only in A: GPU gpu6",
            "gpu3: active NVLinks 12 links -> 11 links",
            "only in B: nvlink-inactive gpu3 has 1 of 12",
        ],
    ),
    "nccl": (
        "nccl_topo/aws_p5.48xl-topo_2023_official.xml",
        [
            (r"[ ]*<pci busid=\"0000:4f:00.0\"[^\n]*\n", ""),
            (r"(busid=\"0000:52:00.0\" .*?link_width=)\"16\"", r'\1"8"'),
        ],
        ["only in A: PCI function 0000:4f:00.0", "0000:52:00/port: widest PCIe 16 lanes -> 8 lanes"],
    ),
    "xml": (
        f"{_XML}a100-sxm4-v12.xml",
        [
            (r"<driver_version>[^<]*", "<driver_version>550.54.15"),
            (r"<current_link_width>16x", "<current_link_width>8x"),
            (r"<current_power_limit>500.00 W", "<current_power_limit>300.00 W"),
        ],
        [
            "verdict unknown -> failed",
            r"only in B: pcie-link-narrow 0000:01:00.0 .* runs on x8 of x16",
            "0000:01:00.0: PCIe width 16 lanes -> 8 lanes",
            "only in B: gpu-clocks-limited .* 300 W.* 500 W",
            "power limit 500 watts -> 300 watts",
            "nvidia: driver 535.54.03 -> 550.54.15",
            "nvidia: driver library 535.54.03 -> 550.54.15",
        ],
    ),
}


def side(paths: tuple[str, ...]) -> Side:
    target = resolve.of("/", tuple(str(DATA / path) for path in paths))
    return of_snapshot(*diagnose(target.host, target.readers, measure_nothing, site(None)))


def differences(a: tuple[str, ...], b: tuple[str, ...]) -> list[str]:
    """The lines of the comparison."""
    text = re.sub(r"\n    +", " ", as_text(compare(side(a), side(b)), "a", "b"))
    return [line.strip() for line in text.partition("\nNot compared")[0].splitlines()[3:] if line.startswith("  ")]


@pytest.mark.parametrize("name", PAIRS)
def test_the_comparison_shows_what_the_list_has(name: str) -> None:
    a, b = PAIRS[name]
    lines = differences(a, b)
    assert [one for one in BY_HAND[name] if not any(re.search(one, line) for line in lines)] == []
    assert [one for one in NOT_SHOWN.get(name, ()) if any(re.search(one, line) for line in lines)] == []
    known = [*BY_HAND[name], *FURTHER]
    assert [line for line in lines if not any(re.search(one, line) for one in known)] == []


@pytest.mark.parametrize("name", CHANGES)
def test_the_comparison_shows_the_changes_of_a_machine(name: str, tmp_path: Path) -> None:
    path, changes, expected = CHANGES[name]
    before = (DATA / path).read_text(encoding="utf-8")
    after = before
    for old, new in changes:
        after, count = re.subn(old, new, after, count=1)
        assert count == 1
    changed = tmp_path / (DATA / path).name
    changed.write_text(after, encoding="utf-8")
    lines = differences((path,), (str(changed),))
    assert [one for one in expected if not any(re.search(one, line) for line in lines)] == []
    assert len(lines) == len(expected)
