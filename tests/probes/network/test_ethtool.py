from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.network.ethtool import MODES, bit_maps, fastest, link_modes

HEADER = Path("/usr/include/linux/ethtool.h")
SPEED_OF = {bit: speed for speed, bits in MODES.items() for bit in bits}


def test_the_table_is_that_of_the_kernel() -> None:
    if not HEADER.exists():
        pytest.skip(f"needs the kernel's {HEADER}")
    modes = re.findall(r"ETHTOOL_LINK_MODE_(\d+)base\w+_BIT\s*= (\d+)", HEADER.read_text())
    newest = max(int(bit) for _, bit in modes)
    assert {bit: speed for bit, speed in SPEED_OF.items() if bit <= newest} == {int(bit): int(s) for s, bit in modes}


def test_each_bit_is_of_one_speed() -> None:
    assert len(SPEED_OF) == sum(len(bits) for bits in MODES.values())


@pytest.mark.parametrize(
    ("bits", "gigabits"),
    [
        ([5, 6, 10, 13, 50, 85], 400),  # 1000baseT, autonegotiation, fibre, pause, FEC, 400000baseKR4
        ([12, 31, 36], 100),
        ([124], 1600),
        ([6, 7, 49, 50, 51, 74], None),  # none of them is a speed
        ([], None),
    ],
)
def test_the_fastest_mode(bits: list[int], gigabits: float | None) -> None:
    assert fastest(sum(1 << bit for bit in bits)) == (gigabits and gigabits * 1e9 / 8)


@given(st.lists(st.sampled_from(sorted(SPEED_OF)), min_size=1), st.sampled_from(sorted(SPEED_OF)))
def test_one_more_mode_is_never_slower(bits: list[int], further: int) -> None:
    modes = sum(1 << bit for bit in set(bits))
    before, after = fastest(modes), fastest(modes | 1 << further)
    assert before is not None
    assert after == max(before, SPEED_OF[further] * 1e6 / 8)


@given(st.integers(min_value=max(SPEED_OF) + 1, max_value=4000))
def test_a_newer_mode_could_be_the_fastest(bit: int) -> None:
    with pytest.raises(ValueError, match=f"link mode {bit} is newer than this program"):
        fastest(1 << bit | 1 << 85)


@given(st.tuples(*[st.integers(0, (1 << 128) - 1)] * 3))
def test_the_bit_maps_of_an_answer(maps: tuple[int, int, int]) -> None:
    words = [(bits >> 32 * place) & 0xFFFFFFFF for bits in maps for place in range(4)]
    answer = struct.pack("=II7Bb32x12I", 0x4C, 400_000, *range(7), 4, *words)
    supported, _, partner = maps  # between them: what the port advertises
    assert bit_maps(answer) == (supported, partner)


def test_a_device_without_modes_says_nothing() -> None:
    assert list(link_modes("lo")) == []


def test_names_that_no_device_has_are_not_asked() -> None:
    names = ("", "-h", "lo:1", "lo\0", "../lo", "\x1b[2J", "\udcff", "l" * 300)
    how = "run in the network namespace of the host"
    assert list(link_modes(*names)) == [
        NotChecked(
            what="Net.max_speed",
            subject=name,
            reason=Reason.OTHER_CONTEXT,
            detail="not in this network namespace",
            how=how,
        )
        for name in names
    ]
