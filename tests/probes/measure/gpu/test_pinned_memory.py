"""Pinned host memory for the copy engines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linkgauge.probes.measure.gpu.cuda_driver import Cuda
from linkgauge.probes.measure.gpu.pinned_memory import ANYWHERE, PinnedMemory

SIZE = 64 << 20
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class NoDriver(Cuda):
    """Registers no memory."""

    def __init__(self) -> None:
        pass

    def pinned(self, address: int, size: int) -> None:
        del address, size


@pytest.mark.skipif(
    not ENABLED.exists() or "[never]" in ENABLED.read_text(), reason="a kernel without transparent huge pages"
)
def test_it_has_huge_pages() -> None:
    """The kernel gives none to a shared mapping (admin-guide/mm/transhuge: shmem_enabled is "never")."""
    memory = PinnedMemory(NoDriver(), ANYWHERE, SIZE)
    mapped = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    (one,) = [text for text in mapped if holds(text, memory.address)]
    huge = re.search(r"^AnonHugePages: +([0-9]+) kB$", one, re.MULTILINE)
    assert huge is not None
    assert int(huge[1]) << 10 >= SIZE // 2


def holds(text: str, address: int) -> bool:
    first, _, last = text.partition(" ")[0].partition("-")
    return bool(last) and int(first, 16) <= address < int(last, 16)
