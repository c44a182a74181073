"""Names of PCI functions from pci.ids."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Pci
from linkgauge.probes.host.live import Live
from linkgauge.probes.pcie import pci_ids
from linkgauge.probes.pcie.pci import read_pci
from tests.support.nodes.pci_machines import CARD, GPU, NO_NAMES, machine
from tests.support.nodes.trees import write

IDS = """\
#
#	List of PCI ID's
1002  Advanced Micro Devices, Inc. [AMD/ATI]
	74a1  Aqua Vanjaram [Instinct MI300X]
10de  NVIDIA Corporation
	2330  GH100 [H100 SXM5 80GB]
		10de 16c1  not a device, a board
# a comment inside

	2335  GH100[H200 SXM 141GB]
	2336  \t
144d  Samsung Electronics Co Ltd
	a80c  NVMe SSD Controller S4LV008[Pascal]
15b3  Mellanox Technologies
	2330  of another vendor
	1021  MT2910 Family
C 03  Display controller
	10de  not a vendor
"""
FUNCTIONS = [
    Pci(key="0", vendor=0x10DE, device=0x2335),
    Pci(key="1", vendor=0x10DE, device=0x2330),
    Pci(key="2", vendor=0x10DE, device=0x16C1),
    Pci(key="3", vendor=0x1002, device=0x74A1),
    Pci(key="4", vendor=0x9999, device=0x2330),
    Pci(key="5", vendor=0x10DE),
    Pci(key="6", device=0x2330),
    Pci(key="7", vendor=0x15B3, device=0x1021),
    Pci(key="8", vendor=0x10DE, device=0x2336),
    Pci(key="9", vendor=0xFFFFFFFFFF, device=0x1),
    Pci(key="a", vendor=0x144D, device=0xA80C),
]
NAMES = [
    Pci(key="0", name="NVIDIA H200 SXM 141GB"),
    Pci(key="1", name="NVIDIA H100 SXM5 80GB"),
    Pci(key="3", name="Advanced Micro Devices Instinct MI300X"),
    Pci(key="7", name="Mellanox MT2910 Family"),
    Pci(key="8", name="NVIDIA"),
    Pci(key="a", name="Samsung NVMe SSD Controller S4LV008[Pascal]"),
]


@pytest.mark.parametrize("path", pci_ids.FILES)
def test_names(tmp_path: Path, path: str) -> None:
    """The names come from the first readable copy."""
    write(tmp_path, {path: IDS})
    for other in pci_ids.FILES[: pci_ids.FILES.index(path)]:
        write(tmp_path, {f"{other}/folder": ""})
    assert list(pci_ids.read_names(Live(str(tmp_path)), FUNCTIONS)) == NAMES


def test_names_come_with_the_functions(tmp_path: Path) -> None:
    write(tmp_path, machine({CARD: GPU}, **{pci_ids.FILES[0]: IDS}))
    told = list(read_pci(Live(str(tmp_path))))
    assert told[-1] == Pci(key="0000:17:00.0", name="NVIDIA H100 SXM5 80GB")
    assert NO_NAMES not in told


@given(st.text() | st.text("012abc \t\n#"), st.integers(0, 0xFFF), st.integers(0, 0xFFF))
def test_any_text_for_names(text: str, vendor: int, device: int) -> None:
    with TemporaryDirectory() as root:
        write(Path(root), {pci_ids.FILES[0]: text})
        names = list(pci_ids.read_names(Live(root), [Pci(key="0", vendor=vendor, device=device)]))
    assert all(isinstance(one, Pci) and one.name for one in names)


@given(st.dictionaries(st.integers(0, 20), st.dictionaries(st.integers(0, 20), st.text("abc", min_size=1), max_size=4)))
def test_each_name_of_a_file_is_found(names: dict[int, dict[int, str]]) -> None:
    lines = ["# names"]
    for vendor, devices in names.items():
        lines += [f"{vendor:04x}  maker{vendor}", *(f"\t{device:04x}  {name}" for device, name in devices.items())]
    functions = [Pci(key=f"{v} {d}", vendor=v, device=d) for v in range(20) for d in range(20)]
    with TemporaryDirectory() as root:
        write(Path(root), {pci_ids.FILES[0]: "\n".join(lines)})
        found = {one.key: one.name for one in pci_ids.read_names(Live(root), functions) if isinstance(one, Pci)}
    assert found == {
        f"{v} {d}": f"maker{v} {name}"
        for v, devices in names.items()
        for d, name in devices.items()
        if v < 20 and d < 20
    }
