"""Status bits of corrected errors (CESta): those of the link are information, others are not shown."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.texts import report_of

NAMES = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "AdvNonFatalErr")
OF_LINKS = NAMES[1:5]


def text(bits: tuple[bool, ...], address: str = "41:00.0") -> str:
    status = " ".join(f"{name}{'+' if bit else '-'}" for name, bit in zip(NAMES, bits, strict=True))
    return f"{address} 3D controller [0302]: NVIDIA Corporation GA100 [10de:20f1] (rev a1)\n\t\tCESta:\t{status}\n"


@pytest.mark.parametrize("bits", list(product((False, True), repeat=len(NAMES))))
def test_all_bits(bits: tuple[bool, ...]) -> None:
    wanted = [name for name, bit in zip(NAMES, bits, strict=True) if bit and name in OF_LINKS]
    found = [one for one in report_of(text(bits)).findings if one.code == "pcie-errors"]
    assert [(one.severity, one.observed) for one in found] == ([("info", ", ".join(wanted))] if wanted else [])


def test_many_functions_are_one_finding() -> None:
    report = report_of("\n".join(text((False, True) * 3, f"{bus:02x}:00.0") for bus in range(16)))
    (found,) = (one for one in report.findings if one.code == "pcie-errors")
    assert "15 more functions" in found.message


@pytest.mark.parametrize(("link", "verdict"), [("", "unknown"), ("\t\tLnkCap:\tSpeed 16GT/s, Width x16\n", "ok")])
def test_bits_alone_show_no_sound_link(link: str, verdict: str) -> None:
    state = link.replace("LnkCap", "LnkSta")
    first, last = text((False, True) * 3).split("\n", 1)
    assert report_of(f"{first}\n{link}{state}{last}").verdict == verdict
    assert report_of(last).verdict == "unknown"
