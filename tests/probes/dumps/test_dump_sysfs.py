"""Pasted files of /sys and /proc: whole, cut, and of rubbish."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net, Pci, Port, Setting
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import sysfs_text

OUTPUTS = Path(__file__).parents[3].parent / "shared/data/outputs"
ROOM = "/sys/bus/pci/devices/0000:53:00.0"
TEXT = f"""\
{ROOM}/class:0x030200
{ROOM}/current_link_speed:8.0 GT/s PCIe
{ROOM}/current_link_width: 8
{ROOM}/max_link_width = 16
/sys/devices/pci0000:50/0000:50:01.0/0000:54:00.0/numa_node:-1
$ cat /sys/class/infiniband/mlx5_0/ports/1/rate
400 Gb/sec (4X NDR)
/sys/class/infiniband/mlx5_0/ports/1/state: 4: ACTIVE
/sys/class/net/eth0/speed\t100000
root@node:~# cat /sys/kernel/mm/transparent_hugepage/enabled
always [madvise] never
/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:powersave
/sys/devices/system/cpu/cpu56/cpufreq/scaling_governor:performance
/proc/sys/kernel/numa_balancing 1
$ cat /sys/kernel/mm/memory_peers/nv_mem/version
cat: /sys/kernel/mm/memory_peers/nv_mem/version: No such file or directory
"""
FACTS = [
    Pci(key="0000:53:00.0", pci_class=0x030200, speed=8e9, width=8, lost=False, max_width=16),
    Port(key="mlx5_0/1", rate=50e9, lanes="4X NDR", state="ACTIVE", device="mlx5_0"),
    Net(key="eth0", speed=12.5e9),
    Setting(key="transparent_hugepage", value="madvise"),
    Setting(key="scaling_governor", value="powersave, performance"),
    Setting(key="numa_balancing", value="1"),
]


def said(text: str) -> list[Record]:
    return list(sysfs_text.read(Part("dump", 1, text)))


def plain(told: list[Record]) -> list[Record]:
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in told]


def begins(text: str) -> int | None:
    found = re.search(sysfs_text.BEGIN, text, re.MULTILINE)
    return found.start() if found else None


def test_all_of_it() -> None:
    assert begins(TEXT) == 0
    assert plain(said(TEXT)) == FACTS


def test_where_it_stood() -> None:
    cites = {
        name: (cite.source, cite.text)
        for one in said(TEXT)
        if isinstance(one, Port)
        for name, cite in one.cites.items()
    }
    assert cites["rate"] == ("dump:7", "/sys/class/infiniband/mlx5_0/ports/1/rate: 400 Gb/sec (4X NDR)")
    assert cites["state"][0] == "dump:8"


def test_cut_at_every_line() -> None:
    """A setting is what the parts that were shown have: of two governors the first alone, until the second comes."""
    lines = TEXT.splitlines()
    whole = {(type(one), one.key): one for one in FACTS}
    for end in range(len(lines) + 1):
        for one in plain(said("\n".join(lines[:end]))):
            assert isinstance(one, Fact)
            known = whole[type(one), one.key]
            if isinstance(one, Setting) and isinstance(known, Setting):
                assert (known.value or "").startswith(one.value or "?")
                continue
            told = {name for name in one.__slots__ if getattr(one, name) is not None}
            assert {name: getattr(one, name) for name in told} == {name: getattr(known, name) for name in told}


def test_a_function_that_answers_no_more() -> None:
    text = f"{ROOM}/current_link_speed:Unknown\n{ROOM}/current_link_width:63\n"
    assert plain(said(text)) == [Pci(key="0000:53:00.0", lost=True)]
    (one,) = said(text)
    assert isinstance(one, Pci)
    assert one.cites["width"].source == "dump:2"


@pytest.mark.parametrize(
    ("line", "what", "why"),
    [
        (f"{ROOM}/current_link_width:wide", "Pci.current_link_width", "'wide' is not a number"),
        ("/sys/class/infiniband/mlx5_0/ports/1/rate:much", "Port.rate", "'much' is not a rate"),
        ("/sys/class/infiniband/mlx5_0/ports/1/state:ACTIVE", "Port.state", "'ACTIVE' is not a number and its name"),
        ("/proc/sys/kernel/numa_balancing:maybe", "Setting.value", "'maybe' is not a number"),
    ],
)
def test_what_makes_no_sense_is_missed(line: str, what: str, why: str) -> None:
    (one,) = said(line)
    assert isinstance(one, NotChecked)
    assert (one.what, one.why) == (what, f"dump:1: {line.rpartition(':')[0]}: {why}")


@pytest.mark.parametrize(
    "text", ["", "/sys", "/sys/class/net", "/home/x/y: 1", "see /sys/class/net/eth0/speed: 1", "/sysx/a/b:1"]
)
def test_what_is_no_beginning(text: str) -> None:
    assert begins(text) is None


words = st.sampled_from(
    [*TEXT.splitlines(keepends=True), "\n", " ", ":", "/sys/", "cat ", "0000:53:00.0/", "63", "Unknown"]
)


@given(st.lists(words | st.text(max_size=6), max_size=30).map("".join) | st.text())
def test_any_text(text: str) -> None:
    begins(text)
    for one in said(text):
        assert isinstance(one, (Fact, NotChecked))
        assert decode(encode(one)) == one


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_no_other_tool_begins_so() -> None:
    paths = [path for path in sorted(OUTPUTS.rglob("*")) if path.is_file() and path.suffix != ".tsv"]
    assert [path.name for path in paths if begins(path.read_text(errors="replace")) is not None] == []
