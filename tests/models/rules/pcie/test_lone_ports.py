"""A PCIe port whose lower end a text does not show: a narrow link is information, and no `ok`."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

PORT = "40:01.1 PCI bridge: Intel Corporation Device 352a (rev 04) (prog-if 00 [Normal decode])\n"
BODY = "\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00\n\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16\n"
GPU = "41:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)\n"


def state(width: str) -> str:
    return f"\t\tLnkSta:\tSpeed 32GT/s (ok), Width {width}\n"


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (PORT + BODY + state("x8 (downgraded)"), "0000:40:01.1"),
        (PORT + "...\n" + BODY + state("x8 (downgraded)"), "text:3"),
        (PORT + "...\n" + BODY + state("x8 (downgraded)") + "...\n" + GPU, "text:3"),
    ],
)
def test_a_narrow_port_without_the_device_below_it_is_information(text: str, subject: str) -> None:
    report = report_of(text)
    assert report.verdict == "unknown"
    assert [(one.code, one.severity, one.subject) for one in report.findings] == [("pcie-link-narrow", "info", subject)]
    assert ("Pci.width", subject) in {(one.what, one.subject) for one in report.not_checked}


@pytest.mark.parametrize(
    "text",
    [
        PORT + BODY + state("x16 (ok)"),
        PORT + BODY + state("x0 (downgraded)"),  # an empty slot
        PORT + BODY + state("x4 (downgraded)") + GPU,  # a whole output: the GPU is below another port
    ],
)
def test_no_other_port_is_reported(text: str) -> None:
    assert [one.code for one in report_of(text).findings] == []
