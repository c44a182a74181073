"""lspci -t: trees with several roots, switches, names and numbers; cut, and of rubbish."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.pci import lspci_tree

TREE = """\
-+-[0000:c0]-+-00.0  Advanced Micro Devices, Inc. [AMD] Device 14a4
 |           +-01.1-[c1]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]
 |           \\-03.1-[c2-c6]----00.0-[c3-c6]--+-00.0-[c4]--
 |                                           +-04.0-[c5]--+-00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
 |                                           |            \\-00.1  Mellanox Technologies MT2910 Family [ConnectX-7]
 |                                           \\-08.0-[c6]----00.0  Samsung Electronics Co Ltd Device a80a
 \\-[0001:00]-+-00.0  Intel Corporation Device [8086:09a2]
             \\-14.0
"""
ABOVE = {
    "0000:c0:00.0": "pci0000:c0",
    "0000:c0:01.1": "pci0000:c0",
    "0000:c1:00.0": "0000:c0:01.1",
    "0000:c0:03.1": "pci0000:c0",
    "0000:c2:00.0": "0000:c0:03.1",
    "0000:c3:00.0": "0000:c2:00.0",
    "0000:c3:04.0": "0000:c2:00.0",
    "0000:c5:00.0": "0000:c3:04.0",
    "0000:c5:00.1": "0000:c3:04.0",
    "0000:c3:08.0": "0000:c2:00.0",
    "0000:c6:00.0": "0000:c3:08.0",
    "0001:00:00.0": "pci0001:00",
    "0001:00:14.0": "pci0001:00",
}
IDENTITIES = {
    "0000:c0:00.0": (0x1022, 0x14A4, None),
    "0000:c1:00.0": (0x10DE, 0x2330, "NVIDIA H100 SXM5 80GB"),
    "0000:c5:00.0": (0x15B3, None, "Mellanox ConnectX-7"),
    "0000:c5:00.1": (0x15B3, None, "Mellanox ConnectX-7"),
    "0000:c6:00.0": (0x144D, 0xA80A, None),
    "0001:00:00.0": (0x8086, 0x09A2, None),
    "0001:00:14.0": (None, None, None),
}
BRIDGES = {"0000:c0:01.1", "0000:c0:03.1", "0000:c2:00.0", "0000:c3:00.0", "0000:c3:04.0", "0000:c3:08.0"}


def said(text: str) -> list[Record]:
    return list(lspci_tree.read(Part("dump", 1, text)))


def functions(text: str) -> dict[str, Pci]:
    return {one.key: one for one in said(text) if isinstance(one, Pci)}


def test_the_whole_tree() -> None:
    known = functions(TREE)
    assert {key: one.parent for key, one in known.items()} == ABOVE
    assert {key for key, one in known.items() if one.pci_class == 0x060400} == BRIDGES
    ends = {key: (one.vendor, one.device, one.name) for key, one in known.items() if key not in BRIDGES}
    assert ends == IDENTITIES
    assert known["0000:c6:00.0"].cites["parent"].source == "dump:6"


def test_one_root_and_nothing_but_addresses() -> None:
    text = (
        "-[0000:00]-+-00.0\n           +-01.0-[01-02]--+-00.0\n           |               \\-00.1\n           \\-02.0\n"
    )
    assert {key: one.parent for key, one in functions(text).items()} == {
        "0000:00:00.0": "pci0000:00",
        "0000:00:01.0": "pci0000:00",
        "0000:01:00.0": "0000:00:01.0",
        "0000:01:00.1": "0000:00:01.0",
        "0000:00:02.0": "pci0000:00",
    }


def test_cut_at_every_line() -> None:
    lines = TREE.splitlines()
    for end in range(len(lines) + 1):
        for key, one in functions("\n".join(lines[:end])).items():
            assert one.parent == ABOVE[key]


def test_without_its_beginning_nothing_is_placed() -> None:
    assert said("\n".join(TREE.splitlines()[1:6])) == []


def test_how_it_begins() -> None:
    begins = re.compile(lspci_tree.BEGIN, re.MULTILINE)
    assert [found.start() for found in begins.finditer(f"$ lspci -tv\n{TREE}")] == [12]
    assert begins.match("-[0000:00]-+-00.0")
    assert not begins.match("-[0000] 00:00.0")


words = st.sampled_from(
    [*TREE.splitlines(keepends=True), "-[0000:00]-+-", "+-", "\\-", "-[01]----", "00.0", " ", "\n", "|"]
)


@given(st.lists(words | st.text(max_size=6), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, Pci)
        assert decode(encode(one)) == one
