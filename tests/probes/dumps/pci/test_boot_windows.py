"""Memory windows of GPUs in the lines that the kernel logs at boot (pci/boot_windows.py)."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

H100, RTX_4090, CONNECTX = "10de:2330", "10de:2684", "15b3:1021"
STAMPS = ("[    1.204711] ", "Jul  3 11:20:05 n7 kernel: ", "", "[    1.204711] kernel: ")
FORMS = (
    "pci {a}: BAR 1 [mem {first:#x}-{last:#x} 64bit pref]",
    "pci {a}: BAR 1 [mem {first:#x}-{last:#x} 64bit pref]: assigned",
    "pci {a}: BAR 1: assigned [mem {first:#x}-{last:#x} 64bit pref]",
    "pci {a}: reg 0x14: [mem {first:#x}-{last:#x} 64bit pref]",
    "pci {a}: reg 14: [mem {first:#x}-{last:#x} 64bit pref]",
)
TYPES = (" PCIe Legacy Endpoint", "")
MIB, GIB = 1 << 20, 1 << 30


def _log(form: str, size: int, stamp: str = STAMPS[0], ids: str = H100, code: str = "0x030200", type_: str = "") -> str:
    a, first = "0000:1b:00.0", 0x21000000000
    lines = (
        f"pci {a}: [{ids}] type 00 class {code}{type_}",
        f"pci {a}: BAR 0 [mem 0xb8000000-0xb8ffffff]",
        form.format(a=a, first=first, last=first + size - 1),
        f"pci {a}: BAR 3 [mem 0x22000000000-0x22001ffffff 64bit pref]",
        f"pci {a}: VF BAR 1 [mem 0x23000000000-0x2300fffffff 64bit pref]",
        f"pci {a}: PME# supported from D0 D3hot",
    )
    return "".join(f"{stamp}{line}\n" for line in lines)


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("type_", TYPES)
def test_a_small_window(stamp: str, form: str, type_: str) -> None:
    found = found_in(_log(form, 256 * MIB, stamp, type_=type_))
    assert found == [("pcie-bar1-small", "warning", "0000:1b:00.0")]
    found = found_in(_log(form, 256 * MIB, stamp, RTX_4090, "0x030000", type_))
    assert found == [("pcie-bar1-small", "info", "0000:1b:00.0")]  # its driver has no peers


@pytest.mark.parametrize("form", FORMS)
def test_a_large_window_is_no_finding_and_no_evidence_of_health(form: str) -> None:
    report = report_of(_log(form, 128 * GIB))
    assert not report.findings
    assert report.verdict == "unknown"


@pytest.mark.parametrize("form", FORMS)
def test_functions_that_are_no_gpus(form: str) -> None:
    assert not found_in(_log(form, 32 * MIB, ids=CONNECTX, code="0x020700"))
    assert not found_in(_log(form, 256 * MIB, ids="1a03:2000", code="0x030000"))


def test_the_last_line_counts() -> None:
    small, large = _log(FORMS[0], 256 * MIB), _log(FORMS[2], 128 * GIB)
    assert not found_in(small + large)
    assert found_in(large + small)


def test_a_damaged_address_is_no_size() -> None:
    assert not found_in(_log(FORMS[0], 256 * MIB - 7))
