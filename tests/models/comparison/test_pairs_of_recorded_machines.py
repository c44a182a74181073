"""Pairs of recorded machines beside lists that were made by hand from the files."""

from __future__ import annotations

import re

import pytest

from linkgauge.agent.inputs import resolve
from linkgauge.agent.inputs.site_file import site
from linkgauge.agent.pipeline.diagnose import examine
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.exporters.formats.comparison import as_text
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
        "driver 515.105.01 -> 535.54.03",
        "CUDA of the driver 11.7 -> 12.2",
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


def side(paths: tuple[str, ...]) -> Side:
    target = resolve.of("/", tuple(str(DATA / path) for path in paths))
    return of_snapshot(*examine(target.host, target.readers, measure_nothing, site(None)))


@pytest.mark.parametrize("name", PAIRS)
def test_the_comparison_shows_what_the_list_has(name: str) -> None:
    a, b = PAIRS[name]
    text = re.sub(r"\n    +", " ", as_text(compare(side(a), side(b)), "a", "b"))
    lines = [line.strip() for line in text.partition("\nNot compared")[0].splitlines()[3:] if line.startswith("  ")]
    assert [one for one in BY_HAND[name] if not any(re.search(one, line) for line in lines)] == []
    assert [one for one in NOT_SHOWN.get(name, ()) if any(re.search(one, line) for line in lines)] == []
    known = [*BY_HAND[name], *FURTHER]
    assert [line for line in lines if not any(re.search(one, line) for one in known)] == []
