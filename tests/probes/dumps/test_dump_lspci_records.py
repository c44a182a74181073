"""lspci -mm and -vmm."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Evidence, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.pci import lspci_records

ROWS = """\
01:00.0 "VGA compatible controller" "NVIDIA Corporation" "GA102 [GeForce RTX 3090]" -ra1 "Maker" "GA102"
0001:02:00.0 "Non-Volatile memory controller [0108]" "Samsung Electronics Co Ltd [144d]" "SSD [a80a]" -p02 "" ""
"""
RECORDS = """\
Slot:\t0000:01:00.0
Class:\tVGA compatible controller [0300]
Vendor:\tNVIDIA Corporation [10de]
Device:\tGA102 [GeForce RTX 3090] [2204]
Rev:\ta1
Driver:\tnvidia
NUMANode:\t1

Slot:\t02:00.0
Class:\t0108
Vendor:\t144d
Device:\ta80a
"""


def read(text: str) -> list[Record]:
    assert recognise(text)
    return list(lspci_records.read(Part("f", 1, text)))


def fact(line: str, key: str, **fields: object) -> Pci:
    return Pci(key=key, cites=dict.fromkeys(fields, Evidence(*line.split("|"))), **fields)  # type: ignore[arg-type]


def test_rows() -> None:
    first, second = (f"f:{number}|{row}" for number, row in enumerate(ROWS.splitlines(), 1))
    first, second = first.partition(" -r")[0], second.partition(" -p")[0]
    assert read(ROWS) == [
        fact(first, "0000:01:00.0", pci_class=0x030000, vendor=0x10DE, name="NVIDIA GeForce RTX 3090"),
        fact(second, "0001:02:00.0", pci_class=0x010800, vendor=0x144D, device=0xA80A, name="Samsung SSD"),
    ]


def test_records() -> None:
    name = "NVIDIA GeForce RTX 3090"
    assert read(RECORDS) == [
        fact(
            "f:1|Slot:\t0000:01:00.0",
            "0000:01:00.0",
            pci_class=0x030000,
            vendor=0x10DE,
            device=0x2204,
            name=name,
            driver="nvidia",
            numa=1,
        ),
        fact("f:9|Slot:\t02:00.0", "0000:02:00.0", pci_class=0x010800, vendor=0x144D, device=0xA80A),
    ]


def test_cut_at_any_line() -> None:
    for text in (ROWS, RECORDS):
        for end in range(len(text.splitlines())):
            cut = "\n".join(text.splitlines()[:end])
            keys = [one.key for one in lspci_records.read(Part("f", 1, cut)) if isinstance(one, Pci)]
            assert keys == [one.key for one in read(text) if isinstance(one, Pci)][: len(keys)]


@pytest.mark.parametrize("line", ["01:00.0 VGA compatible controller: NVIDIA", "Slot:\tx", '01:00.0 "a"'])
def test_what_is_no_output(line: str) -> None:
    assert not re.search(lspci_records.BEGIN, line, re.MULTILINE)


pieces = st.sampled_from([*ROWS.splitlines(True), *RECORDS.splitlines(True), '"', "[", "\\", "Slot:\t"])


@given(st.lists(pieces | st.text(max_size=9)).map("".join))
def test_any_text(text: str) -> None:
    for one in lspci_records.read(Part("f", 1, text)):
        assert decode(encode(one)) == one
