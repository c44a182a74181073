"""Where pages lie, as the kernel tells of this process."""

from __future__ import annotations

from linkgauge.probes.measure.memory.page_placement import misplaced, pages, parsed

MAPS = """\
55d0 default file=/usr/bin/python3 mapped=3 mapmax=2 N0=3 kernelpagesize_kB=4
7f01 default anon=1024 dirty=1024 N0=512 N1=512 kernelpagesize_kB=4
7f02 bind:1 anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
7ffd default stack
"""


def test_pages_by_node() -> None:
    assert parsed(MAPS) == {"numa0": (3 + 512) * 4096, "numa1": 512 * 4096 + 2 * (2 << 20)}


def test_pages_that_lie_elsewhere() -> None:
    before = {"numa0": 1 << 20}
    assert misplaced(before, {"numa0": 101 << 20}, "numa0", "numa0") is None
    assert misplaced(before, {"numa0": 26 << 20, "numa1": 75 << 20}, "numa0") == (
        "75% of its pages lie elsewhere, most on numa1"
    )
    assert misplaced(before, {"numa0": 50 << 20, "numa1": 51 << 20}, "numa0", "numa1") is None
    assert misplaced(before, {"numa0": 26 << 20, "numa1": 75 << 20}, "numa0", "numa1") == (
        "25% of its pages lie on numa0, 50% should"
    )
    assert misplaced(before, {"numa0": 1 << 20, "numa1": 9 << 20}, "numa0", "numa1") == (
        "0% of its pages lie on numa0, 50% should"
    )
    assert misplaced(None, None, "numa0") is None
    assert misplaced(before, before, "numa0") is None


def test_pages_of_this_process() -> None:
    assert misplaced(pages(), pages(), "numa0") is None
