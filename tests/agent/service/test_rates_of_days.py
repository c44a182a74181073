"""A service that measures once a day: its measurements of several days together show a loss that one does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory, cycle
from linkgauge.agent.pipeline.past import recent_rates
from linkgauge.agent.pipeline.source import Source
from linkgauge.agent.service import checkpoint
from linkgauge.models.bandwidth.repeated_rates import FEWEST, MOST
from linkgauge.models.diagnosis.repetition import SimultaneousFlows
from linkgauge.models.facts.records import Observation
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import found
from tests.support.nodes.small_nodes import ROOT, Clock, copy, gpus_under_switches, source_of

DAY = 24 * 3600.0
NODE = source_of(*gpus_under_switches(8), name="structure")
SLOW = [("bandwidth-low", f"gpu5-{ROOT}")]


@dataclass
class Service:
    """A service whose budget allows one measurement of each copy a day, with a scatter of 2 %."""

    chance: Random
    loss: float = 0.0  # share that copies of gpu5 lose
    memory: Memory = field(default_factory=Memory)
    host: Clock = field(default_factory=Clock)

    def day(self) -> list[tuple[str, str]]:
        """The findings after the measurement of the next day."""
        self.host.at += DAY
        self.memory, report = cycle(self.host, [NODE], Site(), self.memory, self.probes)
        return found(report)

    def later(self) -> list[tuple[str, str]]:
        """The findings of a cycle without a measurement."""
        self.memory, report = cycle(self.host, [NODE], Site(), self.memory)
        return found(report)

    def probes(self, report: Report, undecided: frozenset[SimultaneousFlows]) -> Iterator[Source]:
        """One measurement of each copy; nothing is repeated on the same day."""
        if not report.levels:
            yield source_of(*self.rates(), name="host_copy")

    def rates(self) -> Iterable[Observation]:
        """A measurement of each copy."""
        for gpu in range(8):
            rate = 55.4 * (1 - self.loss * (gpu == 5)) * self.chance.gauss(1, 0.02)
            yield replace(copy((f"gpu{gpu}", ROOT), rate), at=self.host.at)


def test_measurements_of_several_days_show_a_loss_that_one_does_not() -> None:
    for seed in range(2):
        service = Service(Random(seed), loss=0.06)
        days = [service.day() for _ in range(MOST)]
        assert days[: FEWEST - 1] == [[]] * (FEWEST - 1)
        assert days[-1] == service.later() == SLOW
        assert all(found in ([], SLOW) for found in days)


def test_healthy_copies_stay_without_a_finding() -> None:
    service = Service(Random(4))
    assert [service.day() for _ in range(MOST)] == [[]] * MOST


def test_a_changed_rate_is_noticed_on_the_same_day() -> None:
    """The rates before a fault or a repair do not hide it: they are of another state."""
    service = Service(Random(1))
    assert [service.day() for _ in range(10)] == [[]] * 10
    service.loss = 0.3
    assert [service.day() for _ in range(8)] == [SLOW] * 8
    service.loss = 0.0
    days = [service.day() for _ in range(FEWEST)]
    assert days[-1] == []


def test_a_restart_keeps_the_rates_of_earlier_days(tmp_path: Path) -> None:
    service = Service(Random(2), loss=0.06)
    before = [service.day() for _ in range(MOST)]
    assert before[-1] == SLOW
    assert checkpoint.save(str(tmp_path), service.memory, service.host.at) is None
    kept = checkpoint.load(str(tmp_path), Memory(), service.host.at)
    assert (kept.rates, kept.measured) == (service.memory.rates, service.memory.measured)
    restarted = Service(Random(3), loss=0.06, memory=kept, host=service.host)
    assert restarted.day() == SLOW
    assert Service(Random(3), loss=0.06).day() == []  # this measurement alone does not show it


def test_the_memory_keeps_the_last_rates_of_30_days() -> None:
    many = [replace(copy(("gpu0", ROOT), 55.0 + day), at=day * DAY) for day in range(60)]
    assert [one.at / DAY for one in recent_rates((), many, 50 * DAY)] == list(range(50 - MOST + 1, 51))
    assert [one.at / DAY for one in recent_rates(many[::4], (), 50 * DAY)] == list(range(20, 51, 4))
