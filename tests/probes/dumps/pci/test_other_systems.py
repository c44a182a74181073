"""Links in texts of FreeBSD (pci/pciconf.py) and of Windows (pci/windows_links.py)."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from tests.support.texts import found_in, report_of

ROW = "{name}@pci0:{bus}:0:0:\tclass=0x{code} rev=0x00 hdr=0x00 vendor=0x{v} device=0x{d}\n"
OLD_ROW = "{name}@pci0:{bus}:0:0:\tclass=0x{code} card=0x00000000 chip=0x{d}{v} rev=0x00 hdr=0x00\n"
DEVICES = {
    "ice0": ("020000", "8086", "1592", "pcie-link-narrow", "critical"),
    "vgapci0": ("030000", "10de", "2230", "pcie-link-narrow", "critical"),
    "nvme0": ("010802", "144d", "a80a", "storage-link-slow", "warning"),
}
CAPABILITIES = (
    "    cap 10[60] = PCI-Express 2 endpoint max data 256(512) FLR\n"
    "                 max read 512\n"
    "                 link x{w}(x16) speed {s}(16.0) ASPM disabled(L0s/L1)\n",
    "    cap 10[60] = PCI-Express 2 endpoint max data 256(512) link x{w}(x16) speed {s}(16.0)\n",
    "    cap 10[60] = PCI-Express 2 endpoint max data 256(512) FLR RO NS\n                 link x{w}(x16)\n",
)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("row", [ROW, OLD_ROW])
def test_links_of_pciconf(name: str, row: str) -> None:
    code, vendor, device, finding, severity = DEVICES[name]
    head = row.format(name=name, bus=129, code=code, v=vendor, d=device)
    for capability in CAPABILITIES:
        narrow = found_in(head + capability.format(w=4, s="16.0"))
        assert (finding, severity, "0000:81:00.0") in narrow
        assert not found_in(head + capability.format(w=16, s="16.0"))


def test_a_slow_link_of_pciconf_may_be_at_rest() -> None:
    head = ROW.format(name="vgapci0", bus=1, code="030000", v="10de", d="2230")
    assert {one[1] for one in found_in(head + CAPABILITIES[0].format(w=16, s="2.5"))} <= {"info"}


def test_a_port_without_a_device_is_no_fault() -> None:
    port = "pcib3@pci0:0:1:0:\tclass=0x060400 rev=0x00 hdr=0x01 vendor=0x8086 device=0x2030\n"
    assert not found_in(port + CAPABILITIES[0].replace("endpoint", "root port").format(w=0, s="0.0"))


FIELDS = {"CurrentLinkWidth": "{w}", "MaxLinkWidth": "16", "CurrentLinkSpeed": "{s}", "MaxLinkSpeed": "4"}
FORMS = (
    "PciExpress{name} : {value}",
    "PciExpress{name}={value}",
    "DEVPKEY_PciDevice_{name}    {value}",
    "DEVPKEY_PciDevice_{name}    UInt32  {value}",
    "{name}    : {value}",
    "Pcie{name}: {value}",
)


def _list(form: str, order: tuple[str, ...], width: int, speed: str = "4") -> str:
    rows = (form.format(name=name, value=FIELDS[name].format(w=width, s=speed)) for name in order)
    return "".join(f"{row}\n" for row in rows)


@pytest.mark.parametrize("form", FORMS)
def test_properties_of_windows_in_each_order(form: str) -> None:
    for order in permutations(FIELDS):
        assert [(code, severity) for code, severity, _ in found_in(_list(form, order, 8))] == [
            ("pcie-link-narrow", "critical")
        ], order
        assert not found_in(_list(form, order, 16))
        several = found_in(_list(form, order, 16) + "\n" + _list(form, order, 4))
        assert [(code, severity) for code, severity, _ in several] == [("pcie-link-narrow", "info")], order


@pytest.mark.parametrize("form", FORMS)
def test_a_gpu_of_windows_at_rest(form: str) -> None:
    assert {severity for _, severity, _ in found_in(_list(form, tuple(FIELDS), 16, "1"))} <= {"info"}


def test_tables_of_windows() -> None:
    for order, between in product(permutations(FIELDS), ("   ", ",", "\t", " | ")):
        for width, expected in ((8, {("pcie-link-narrow", "critical")}), (16, set())):
            cells = [FIELDS[name].format(w=width, s=4) for name in order]
            text = f"{between.join(('Name', *order))}\n{between.join(('NVIDIA RTX A6000', *cells))}\n"
            assert {(code, severity) for code, severity, _ in found_in(text)} == expected, text


@pytest.mark.parametrize("frame", ["{}", "Bus Interface: {}", "PCIe Link: {}", "  {}", "Bus Interface : {} [?]"])
def test_the_bus_interface_of_programs(frame: str) -> None:
    for form in ("PCIe x16 4.0 @ x{w} 4.0", "PCIe x16 4.0 @ x{w} 1.1", "PCIe v4.0 x16 (16.0 GT/s) @ x{w} (2.5 GT/s)"):
        narrow = found_in(frame.format(form.format(w=8)) + "\n")
        assert [(code, severity) for code, severity, _ in narrow] == [("pcie-link-narrow", "critical")]
        assert {severity for _, severity, _ in found_in(frame.format(form.format(w=16)) + "\n")} <= {"info"}


@pytest.mark.parametrize(
    "text", ["PcieLinkWidth : 8", "PciExpressMaxLinkWidth : 16", "PCIe x16 4.0 slot", "MaxLinkWidth"]
)
def test_a_width_alone_is_unknown(text: str) -> None:
    report = report_of(f"{text}\n")
    assert not report.findings
    assert report.verdict == "unknown"
