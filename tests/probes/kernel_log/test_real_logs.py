"""Kernel logs of real machines, as records and as the lines of dmesg."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linkgauge.models.facts.machine import Event
from linkgauge.probes.kernel_log.ring_buffer import KMSG, read_kernel_log
from tests.support.nodes.trees import tree

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "outputs" / "kmsg"
EXPECTED = {
    "dmesg-with-xid-119.log": [("xid 119 0000:9b:00.0", 5)],
    "kmsg.2.peermem.log": [],
}


@pytest.mark.skipif(not REAL.is_dir(), reason="the collected logs are not beside this repository")
def test_logs_of_real_machines() -> None:
    """Records as they are, dmesg's lines as records a second apart."""
    seen = {}
    for path in sorted(REAL.glob("*.log")):
        lines = [re.sub(r"^\[[^]]*\] ", "", line) for line in path.read_text().splitlines()]
        log = [line if line[:1].isdigit() else f"4,{n},{n}000000,-;{line}" for n, line in enumerate(lines)]
        found = read_kernel_log(tree({KMSG: "\n".join(log)}))
        seen[path.name] = [(one.key, one.count) for one in found if isinstance(one, Event)]
    assert seen == EXPECTED
