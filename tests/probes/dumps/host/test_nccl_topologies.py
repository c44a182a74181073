"""Topology files of NCCL with one odd device: never ok where they state a slower link."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1.795e9
FULL = {"link_speed": "32.0 GT/s PCIe", "link_width": "16"}
LOWER = [
    *(("link_speed", f"{speed} GT/s PCIe") for speed in ("16.0", "8.0", "5.0", "2.5")),
    *(("link_width", width) for width in ("8", "4", "2", "1")),
]


def topology(odd: int | None, name: str = "", value: str = "") -> str:
    """The file of four H100. `odd` is the GPU with another value."""
    lines = ['<system version="1">', ' <cpu numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel">']
    for gpu in range(4):
        link = FULL | ({name: value} if gpu == odd else {})
        values = " ".join(f'{key}="{text}"' for key, text in link.items())
        lines += [
            f'  <pci busid="0000:{0x10 + gpu:02x}:00.0" class="0x030200" vendor="0x10de" device="0x2330" {values}>',
            f'   <gpu dev="{gpu}" sm="90" rank="{gpu}" gdr="1"/>',
            "  </pci>",
        ]
    return "\n".join([*lines, " </cpu>", "</system>", ""])


def report_of(text: str) -> Report:
    return evaluate(assemble(read_text("topo.xml", text, AT), Site(), AT, origin="dumps"))


def test_equal_links_are_ok() -> None:
    report = report_of(topology(None))
    assert (report.verdict, report.findings) == ("ok", ())
    assert report.checks["pcie-link-narrow"]
    assert "numa-memory-missing" not in report.checks


@pytest.mark.parametrize("gpu", range(4))
@pytest.mark.parametrize(("name", "value"), LOWER)
def test_a_lower_value_is_a_fault(gpu: int, name: str, value: str) -> None:
    (finding,) = report_of(topology(gpu, name, value)).findings
    code = "pcie-link-narrow" if name == "link_width" else "pcie-link-slow"
    assert (finding.code, finding.subject, finding.severity) == (code, f"0000:{0x10 + gpu:02x}:00.0", "critical")


GRAPH = """NCCL INFO === System : maxBw 48.0 totalBw 240.0 ===
NCCL INFO CPU/0-0 (1/1/2)
NCCL INFO + PCI[48.0] - GPU/0-11000 (0)
NCCL INFO               + NVL[240.0] - NVS/0
NCCL INFO + PCI[48.0] - GPU/0-12000 (1)
NCCL INFO               + NVL[240.0] - NVS/0
NCCL INFO ==========================================
"""


def test_a_printed_graph() -> None:
    assert report_of(GRAPH).verdict == report_of(GRAPH.removesuffix("\n")).verdict == "ok"
    lines = GRAPH.splitlines(keepends=True)
    for kept in range(2, len(lines) - 1):
        assert report_of("".join(lines[:kept])).verdict == "unknown", kept
    for rate in ("24.0", "12.0", "3.0"):
        for text in (GRAPH.replace(f"PCI[48.0] - GPU/0-1{gpu}000", f"PCI[{rate}] - GPU/0-1{gpu}000") for gpu in (1, 2)):
            assert report_of(text).verdict == "unknown"
