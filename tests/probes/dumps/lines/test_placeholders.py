"""Log lines in which a person replaced names (lines/placeholders.py): every line with every placeholder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.dumps.lines.placeholders import fill
from tests.support.texts import found_in, report_of

ADDRESSES = (
    "<BDF>",
    "<bdf>",
    "<pci-address>",
    "<PCI bus id>",
    "[BDF]",
    "{bdf}",
    "$BDF",
    "0000:xx:00.0",
    "xxxx:xx:xx.x",
    "XXXX:XX:00.0",
    "0000:??:00.0",
    "0000:XX:YY.0",
    "DDDD:BB:DD.F",
)
OF_GPUS = (
    "NVRM: Xid (PCI:{a}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:{a}): 48, pid=<pid>, An uncorrectable double bit error (DBE) has been detected",
    "NVRM: GPU {a}: RmInitAdapter failed! (0x24:0x65:1589)",
    "nvidia: probe of {a} failed with error -1",
    "amdgpu {a}: amdgpu: GPU reset begin!",
    "amdgpu {a}: device lost from bus!",
)
OTHERS = (
    "pcieport {a}: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)",
    "pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from {a}",
    "pcieport {a}: pciehp: Slot(12): Link Down",
    "mlx5_core {a}: poll_health:801:(pid 0): device's health compromised - reached miss count",
    "mlx5_core {a} <iface>: TX timeout detected",
    "AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device={a} address=0x8000000ff4d6f]",
)
FRAMES = ("{}", "We see `{}` in the log.", "- `{}`", "[ 1234.567890] {}", "Mar  3 10:11:12 n1 kernel: {}")
REAL = "0000:3b:00.0"


@pytest.mark.parametrize("line", [*OF_GPUS, *OTHERS])
@pytest.mark.parametrize("address", ADDRESSES)
def test_the_meaning_of_a_line_is_the_same(line: str, address: str) -> None:
    for frame in FRAMES:
        real, found = (report_of(frame.format(line.format(a=one)) + "\n") for one in (REAL, address))
        assert [(one.code, one.severity) for one in found.findings] == [
            (one.code, one.severity) for one in real.findings
        ], frame
        assert found.verdict == real.verdict
        assert {one.subject for one in found.findings} == {"gpu" if line in OF_GPUS else "node"}, frame


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ethX: NIC Link is Down", [("nic-port-down", "warning", "ethX")]),
        ("<iface>: NIC Link is Down", [("nic-port-down", "warning", "<iface>")]),
        ("ethX: NIC Link is Down\nethX: NIC Link is Up 25 Gbps", []),
        ("nvme nvmeX: controller is down; will reset: CSTS=0xffffffff", [("storage-degraded", "warning", "nvmeX")]),
        ("watchdog: BUG: soft lockup - CPU#N stuck for 81240s! [x:1]", [("not-enough-evidence", "info", "node")]),
        ("BUG: soft lockup - CPU#N stuck for 81240s!", [("not-enough-evidence", "info", "node")]),
    ],
)
def test_names_of_other_devices(line: str, expected: list[tuple[str, str, str]]) -> None:
    assert found_in(f"{line}\n") == expected


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:<BDF>): <code>, <text>",  # a form, not a line
        "NVRM: Xid (PCI:0000:xx:00.0): N",
        "pcieport <BDF>: AER: Corrected error message received from <BDF>",
        "mlx5_core <BDF> <iface>: Link up",
        "nvidia <BDF>: enabling device (0000 -> 0003)",
        "The kernel writes <BDF> of the GPU before each line.",
        "GPU N is healthy, and ethX has a link.",
    ],
)
def test_lines_without_a_fault(line: str) -> None:
    assert [one for one in report_of(f"{line}\n").findings if one.severity != "info"] == []


@given(st.text("0123456789abcdef", min_size=4, max_size=4), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_a_real_address_is_no_placeholder(domain: str, bus: int, device: int, function: int) -> None:
    line = f"pcieport {domain}:{bus:02x}:{device:02x}.{function}: AER: Corrected error received"
    assert fill(line) == line
