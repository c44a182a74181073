"""`nvidia-smi --query-gpu`: columns in any order, with and without units, cut, and of rubbish."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.nvidia import smi_csv
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared"
AT = 1795230000.0
CELLS = {
    "index": ("3", "4"),
    "name": ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
    "pci.bus_id": ("00000000:53:00.0", "00000000:54:00.0"),
    "driver_version": ("590.48.01", "590.48.01"),
    "pcie.link.gen.current": ("5", "1"),
    "pcie.link.width.current": ("16", "8"),
    "power.draw [W]": ("69.62 W", "[N/A]"),
    "memory.used [MiB]": ("3 MiB", "0 MiB"),
    "clocks_throttle_reasons.active": ("0x0000000000000001", "idle"),
    "ecc.errors.corrected.volatile.total": ("12", "[N/A]"),
}
FIRST = Gpu(
    key="gpu3",
    name="NVIDIA H100 80GB HBM3",
    address="0000:53:00.0",
    pcie_speed=32e9,
    pcie_width=16,
    clock_reasons=("idle",),
    power=69.62,
    memory_used=3 << 20,
    ecc_corrected=12,
)
SECOND = Gpu(
    key="gpu4", name="NVIDIA H100 80GB HBM3", address="0000:54:00.0", pcie_speed=2.5e9, pcie_width=8, memory_used=0
)
DRIVER = Driver(key="nvidia", version="590.48.01", library="590.48.01")


def printed(names: list[str]) -> str:
    rows = (", ".join(CELLS[name][row] for name in names) for row in (0, 1))
    return "\n".join((", ".join(names), *rows)) + "\n"


SAMPLES = (printed([*CELLS]), "index, clocks_throttle_reasons.hw_slowdown\n0, Active\n1, Not Active\n")


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(smi_csv.read(Part("gpus.csv", 1, text, AT)))


def plain(text: str) -> list[Record]:
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in said(text)]


@given(st.permutations(list(CELLS)))
def test_columns_in_any_order(names: list[str]) -> None:
    text = printed(names)
    line = text.split("\n")[1]
    assert plain(text) == [
        DRIVER,
        FIRST,
        Observation(
            about="gpu3",
            quantity="ecc_corrected",
            unit="count",
            value=12.0,
            at=AT,
            evidence=Evidence("gpus.csv:2", line[:300]),
        ),
        DRIVER,
        SECOND,
        NotChecked(
            what="Gpu.clock_reasons",
            subject="gpu4",
            reason=Reason.UNREADABLE,
            path="gpus.csv:3",
            detail="'idle' is not a hexadecimal number",
        ),
    ]


def test_a_reason_that_was_asked_alone() -> None:
    """One that is active tells; that one is not says nothing of the others."""
    text = "index, clocks_throttle_reasons.hw_slowdown\n0, Active\n1, Not Active\n"
    assert plain(text) == [Gpu(key="gpu0", clock_reasons=("hardware slowdown",))]


def test_without_an_index() -> None:
    """The address; without both, the order."""
    keys = [one.key for one in said(printed(["name", "pci.bus_id"])) if isinstance(one, Gpu)]
    assert keys == ["0000:53:00.0", "0000:54:00.0"]
    assert [one.key for one in said(printed(["name", "driver_version"])) if isinstance(one, Gpu)] == ["gpu0", "gpu1"]


def test_tables_of_processes_hold_no_gpus() -> None:
    assert said("gpu_name, gpu_bus_id, pid, used_gpu_memory [MiB]\nNVIDIA H100, 00000000:53:00.0, 17, 3 MiB\n") == []


def test_what_follows_a_table_is_none_of_it() -> None:
    text = printed(["index", "name"])
    assert plain(text + "a, b, c\n1, 2\n") == plain(text)


def test_cut_at_every_character_of_the_last_line() -> None:
    text = printed(list(CELLS)).rstrip("\n")
    for end in range(text.rindex("\n") + 1, len(text)):
        for one in plain(text[:end]):
            if isinstance(one, Gpu) and one.key == "gpu4":
                names = (name for name in one.__dataclass_fields__ if getattr(one, name) is not None)
                assert all(getattr(one, name) == getattr(SECOND, name) for name in names)


@given(st.text() | st.lists(st.sampled_from(printed(list(CELLS)).split("\n")) | st.text(max_size=9)).map("\n".join))
def test_any_text(text: str) -> None:
    re.compile(smi_csv.BEGIN, re.MULTILINE).search(text)
    for one in smi_csv.read(Part("gpus.csv", 1, text)):
        assert isinstance(one, (Fact, NotChecked, Observation))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared with outputs of real tools")
def test_outputs_of_real_tools() -> None:
    """One GPU of each capture while it was at rest and under load, and none elsewhere."""
    for path in sorted(SHARED.glob("data/outputs/*/*")) + sorted(SHARED.glob("cases/*/dumps/*")):
        parts = split(path.name, path.read_text("utf-8", "replace"), 0.0, READERS)
        found = [one for family, part in parts if family and family.name == "smi_csv" for one in family.read(part)]
        names = [one.name for one in found if isinstance(one, Gpu)]
        assert len(names) == (2 if path.name.startswith("linux-x86_64") else 0), path
        assert all(name and name.startswith("NVIDIA") for name in names), path
        assert not [one for one in found if isinstance(one, NotChecked)], path
