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


def nics(odd: int | None, name: str = "", value: str = "", device: str = "0x1021") -> str:
    """The file of a GPU and four equal NICs. `odd` is the NIC with another value."""
    lines = [
        '<system version="1">',
        ' <cpu numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel">',
        '  <pci busid="0000:10:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="32.0 GT/s PCIe"'
        ' link_width="16">',
    ]
    for nic in range(4):
        given = {**FULL, "speed": "400000"} | ({name: value} if nic == odd else {})
        lines += [
            f'   <pci busid="0000:{0x21 + nic:02x}:00.0" class="0x020700" vendor="0x15b3" device="{device}"'
            f' link_speed="{given["link_speed"]}" link_width="{given["link_width"]}">',
            f'    <nic><net name="mlx5_{nic}" dev="{nic}" speed="{given["speed"]}" port="1" guid="0x{nic}"/></nic>',
            "   </pci>",
        ]
    return "\n".join([*lines, "  </pci>", " </cpu>", "</system>", ""])


@pytest.mark.parametrize("nic", range(4))
@pytest.mark.parametrize("device", ["0x1021", "0xd93f"])
def test_one_of_four_equal_nics_is_lower(nic: int, device: str) -> None:
    address = f"0000:{0x21 + nic:02x}:00.0"
    for width in ("8", "4", "1"):
        (finding,) = report_of(nics(nic, "link_width", width, device)).findings
        assert (finding.code, finding.subject, finding.severity) == ("pcie-link-narrow", address, "warning")
    for rate in ("200000", "100000", "25000"):
        (finding,) = report_of(nics(nic, "speed", rate, device)).findings
        assert (finding.code, finding.subject, finding.severity) == ("nic-rate-low", f"mlx5_{nic}/1", "warning")


@pytest.mark.parametrize("unknown", ["-1", "0"])
def test_a_nic_without_a_known_speed_is_not_down(unknown: str) -> None:
    assert report_of(nics(1, "speed", unknown)).findings == report_of(nics(None)).findings == ()


@pytest.mark.parametrize("rates", [(400, 100), (100, 400), (400, 400, 100), (200, 400, 400)])
def test_ports_without_names_and_with_other_rates_are_not_ok(rates: tuple[int, ...]) -> None:
    def shown(rate: int) -> str:
        return f"\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {rate}\n"

    report = report_of("".join(map(shown, rates)))
    assert (report.verdict, report.findings) == ("unknown", ())
    assert any("different rates" in one.detail or one.what == "Port.rate" for one in report.not_checked)


def repeated(places: tuple[str, ...]) -> str:
    """A file that repeats its switch for each of the eight GPUs. `places` are the addresses above the switch."""
    bridge = 'class="0x060400" vendor="0x1000" device="0xa096" link_speed="16 GT/s" link_width="16"'
    lines = ['<system version="2">', ' <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD">']
    for part, above in enumerate(places):
        lines.append(f'  <pci busid="{above}" {bridge}>')
        for gpu in range(8 * part // len(places), 8 * (part + 1) // len(places)):
            lines += [
                f'   <pci busid="0000:c5:00.0" {bridge}>',
                f'    <pci busid="0000:d{gpu}:00.0" class="0x038000" vendor="0x1002" device="0x738c">',
                f'     <gpu dev="{gpu}" sm="120" gcn="908" rank="{gpu}" gdr="1"/>',
                "    </pci>",
                "   </pci>",
            ]
        lines.append("  </pci>")
    return "\n".join([*lines, " </cpu>", "</system>", ""])


def test_a_switch_that_is_repeated_for_each_of_its_ports() -> None:
    report = report_of(repeated(("0000:c1:00.0",)))
    assert sum(device.kind == "gpu" for device in report.topology.devices) == 8
    assert [one.detail for one in report.not_checked if one.what == "dump"] == []


def test_the_same_address_at_another_place_is_left_out() -> None:
    report = report_of(repeated(("0000:c1:00.0", "0000:c2:00.0")))
    assert sum(device.kind == "gpu" for device in report.topology.devices) == 4
    assert any("a second <pci> of 0000:c5:00.0" in one.detail for one in report.not_checked)
    assert report.verdict == "unknown"
