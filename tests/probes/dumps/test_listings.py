"""Findings and verdicts from listings of files in /sys (ABI/testing/sysfs-bus-pci of the kernel's documentation)."""

from __future__ import annotations

from tests.support.texts import report_of

ONE = "/sys/bus/pci/devices/0000:1b:00.0"
OTHER = "/sys/bus/pci/devices/0000:43:00.0"


def widths(path: str, width: int) -> str:
    return f"{path}/current_link_width:{width}\n{path}/max_link_width:16\n"


def test_a_narrow_function_among_several_without_a_class_is_a_gap() -> None:
    """Each can be a port above a narrower device. So the narrow one is no fault, and the verdict is not ok."""
    alone, several = report_of(widths(ONE, 8)), report_of(widths(ONE, 8) + widths(OTHER, 16))
    assert [(one.code, one.confidence) for one in alone.findings] == [("pcie-link-narrow", "likely")]
    assert [(one.code, one.severity) for one in several.findings] == [("pcie-link-narrow", "info")]
    assert [(one.subject, one.what) for one in several.not_checked if one.what == "Pci.width"] == [
        ("0000:1b:00.0", "Pci.width")
    ]
    assert several.verdict == "unknown"
