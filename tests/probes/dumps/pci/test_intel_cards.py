"""The memory window of Intel's cards: in lspci, and in the log of a bridge without room for a larger one."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

CARDS = ("DG2 [Arc A770]", "DG2 [Arc A380]", "Battlemage G21 [Arc B580]", "DG2 [Arc Pro A50]")
OTHERS = (
    "Meteor Lake-P [Intel Arc Graphics]",
    "Raptor Lake-S GT1 [UHD Graphics 770]",
    "Panther Lake [Arc B390]",
    "Panther Lake [Arc Pro B370]",
)
LSPCI = """{address} VGA compatible controller: Intel Corporation {name} (prog-if 00 [VGA controller])
	Subsystem: Intel Corporation Device 1100
	Flags: bus master, fast devsel, latency 0, IRQ 90
	{first}Memory at 82000000 (64-bit, non-prefetchable) [size=16M]
	{second}Memory at fce0000000 (64-bit, prefetchable) [size={size}]
	Kernel driver in use: xe
"""
NUMBERED = (("", ""), ("Region 0: ", "Region 2: "))
RESIZES = "[    5.0] xe 0001:03:00.0: [drm] Attempting to resize bar from 256MiB -> 16384MiB\n"
FULL = (
    "[    5.1] pcieport 0001:00:00.0: Assigned bridge window [mem 0x1800000000-0x1817ffffff 64bit pref] to [bus 01-04] "
    "cannot fit 0x400000000 required for 0001:02:01.0 bridging to [bus 03]\n"
)
RESIZED = "[    5.2] xe 0001:03:00.0: [drm] BAR2 resized to 16384M\n"


@pytest.mark.parametrize(("first", "second"), NUMBERED)
@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize(("size", "codes"), [("256M", {"pcie-bar1-small"}), ("8G", set()), ("16G", set())])
def test_cards(name: str, size: str, codes: set[str], first: str, second: str) -> None:
    report = report_of(LSPCI.format(address="45:00.0", name=name, size=size, first=first, second=second))
    assert {one.code for one in report.findings} == codes
    assert all("256 MiB" in one.message for one in report.findings)


@pytest.mark.parametrize("name", OTHERS)
def test_the_gpus_of_processors(name: str) -> None:
    text = LSPCI.format(address="00:02.0", name=name, size="256M", first="", second="")
    assert report_of(text).findings == ()


@pytest.mark.parametrize(
    ("text", "found"), [(RESIZES + FULL, True), (FULL, False), (RESIZES + FULL + RESIZED, False), (RESIZES, False)]
)
def test_a_bridge_without_room(text: str, found: bool) -> None:
    codes = {(one.code, one.severity) for one in report_of(text).findings}
    assert (("pcie-bar1-small", "warning") in codes) == found


def test_a_window_that_i915_calls_reduced() -> None:
    line = "i915 0000:03:00.0: [drm] Using a reduced BAR size of 256MiB. Consider enabling 'Resizable BAR' or similar"
    assert {(one.code, one.severity) for one in report_of(line + "\n").findings} == {("pcie-bar1-small", "warning")}
