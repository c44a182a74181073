"""What a look costs, counted where sources ask: a machine of eight H100 as large as real ones are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from bench.cost.served import uncore
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.source import Interval
from linkgauge.models.facts.records import Record
from linkgauge.models.report import Origin
from linkgauge.probes.host.host import Host
from tests.support.nodes.described import node

pytestmark = pytest.mark.e2e


@dataclass
class Counting:
    """A host that counts what it is asked."""

    host: Host
    origin: Origin = "live"
    asked: Counter[str] = field(default_factory=Counter)

    def read(self, path: str) -> str | None:
        self.asked["read"] += 1
        return self.host.read(path)

    def list(self, path: str) -> list[str]:
        self.asked["list"] += 1
        return self.host.list(path)

    def resolve(self, path: str) -> str | None:
        self.asked["resolve"] += 1
        return self.host.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        self.asked["call"] += 1
        return self.host.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self.host.now()


MACHINES = {
    "8 H100": ("hgx-h100", ""),
    "8 H100, 472 functions": ("hgx-h100", uncore(472)),
    "p5.48xlarge": ("vm-p5", ""),
}
MOST = 1500  # reads of a cycle; calls of NVIDIA's driver are counted in test_nvml.py


def reads(name: str, further: str, seldom: bool) -> int:
    """How many files are read in a cycle, with the sources that are asked seldom or without."""
    host = Counting(node(name, further))
    for reader in SOURCES:
        if seldom or reader.interval is not Interval.DISCOVERY:
            list(reader.read(host))
    return host.asked["read"]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cycle_stays_within_its_reads(machine: str) -> None:
    name, further = MACHINES[machine]
    cycle, first = reads(name, further, seldom=False), reads(name, further, seldom=True)
    assert 100 < cycle <= MOST
    assert cycle < first < MOST + 500


def test_the_first_cycle_of_an_ordinary_machine_too() -> None:
    assert reads("hgx-h100", "", seldom=True) <= MOST


if __name__ == "__main__":  # the figures of docs/operate/overhead.md
    for machine, (name, further) in MACHINES.items():
        print(f"{machine:24} {reads(name, further, seldom=False):6} {reads(name, further, seldom=True):6}")
