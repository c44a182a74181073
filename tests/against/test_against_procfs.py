"""Files of real machines that prometheus/procfs collected: every reader accepts them.

They lie outside of this project; without them, nothing is compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.models.facts.records import NotChecked, Run
from linkgauge.probes.host.live import Live
from tests.support.ttar import unpack

ARCHIVE = Path(__file__).parents[3] / "shared/data/procfs/procfs_hw_subset.ttar"
DESERVED = {
    ("Node", "node"),  # it has no files of /proc
    ("Pci.name", "node"),  # the collection has only files below /sys, so the list of names is missing
    ("Node.virtual", "node"),  # proc/cpuinfo is missing, which shows a hypervisor
    ("Numa.cpus", "numa1"),  # it has counters of two NUMA nodes, and neither their CPUs nor their memory
    ("Numa.cpus", "numa2"),
    ("Numa.memory", "numa1"),
    ("Numa.memory", "numa2"),
    ("Net.max_speed", "node"),  # only the driver knows the modes of eth0
}


def test_what_is_not_checked_deserves_it(tmp_path: Path) -> None:
    if not ARCHIVE.exists():
        pytest.skip(f"the collection is not here: {ARCHIVE}")
    unpack(ARCHIVE, tmp_path)
    host = Live(str(tmp_path / "fixtures"))
    said = [one for reader in SOURCES for one in collect(reader, host)]
    assert {(one.what, one.subject) for one in said if isinstance(one, NotChecked)} == DESERVED
    assert [one.name for one in said if isinstance(one, Run) and not one.ok] == []
