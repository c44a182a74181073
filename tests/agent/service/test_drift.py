"""A link that becomes 3 % slower than its own past becomes a finding of the service, with its start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory, cycle
from linkgauge.agent.pipeline.source import Source
from linkgauge.agent.service.drift_source import EVERY
from linkgauge.agent.service.recorder import Recorder
from linkgauge.agent.state.history_file import FILE
from linkgauge.models.diagnosis.repetition import SimultaneousFlows
from linkgauge.models.facts.records import Observation
from linkgauge.models.facts.units import from_utc
from linkgauge.models.inventory.inventory import Inventory, Item
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.small_nodes import ROOT, Clock, copy, gpus_under_switches, source_of

HOUR, DAY = 3600.0, 86400.0
GPUS = gpus_under_switches(2)


class Service:
    """A service that measures the copy to two GPUs every hour, with 1 % noise, and evaluates its history."""

    def __init__(self, folder: Path, seed: int, loss: float, begins: float, ends: float = 1e9) -> None:
        self.folder, self.random = str(folder), Random(seed)
        self.loss, self.begins, self.ends = loss, begins, ends
        self.memory, self.host, self.recorder = Memory(), Clock(), Recorder()

    def hour(self) -> tuple[Finding, ...]:
        """The findings after the next hour."""
        self.host.at = (self.host.at // HOUR + 1) * HOUR
        now = self.host.at
        sources = [source_of(*GPUS, name="structure"), *self.recorder.sources(self.folder, self.memory, now, now)]
        self.memory, report = cycle(self.host, sources, Site(), self.memory, self.probes)
        assert self.recorder.add(self.folder, report, now, self.memory)[1] is None
        return report.findings

    def probes(self, report: Report, undecided: frozenset[SimultaneousFlows]) -> Iterator[Source]:
        """Both copies once; nothing is repeated in the same hour."""
        if not report.levels:
            yield source_of(*self.rates(), name="host_copy")

    def rates(self) -> Iterable[Observation]:
        """Both GPUs are equally slow, so that no comparison between them shows it."""
        lost = self.loss * (self.begins <= self.host.at < self.ends)
        for gpu in range(2):
            rate = 55.4 * (1 - lost) * self.random.gauss(1, 0.01)
            yield replace(copy((f"gpu{gpu}", ROOT), rate), at=self.host.at)


@pytest.mark.slow
def test_a_drift_is_a_finding_with_its_start(tmp_path: Path) -> None:
    service = Service(tmp_path, 1, 0.03, 6 * DAY, 9 * DAY)
    days = [[service.hour() for _ in range(24)] for _ in range(11)]
    service.recorder.close()
    assert [found for day in days[:6] for found in day if found] == []
    (one,) = days[7][-1]
    assert (one.code, one.severity, one.basis, one.subject) == ("bandwidth-low", "warning", "baseline", "0000:01:00.0")
    assert str(one.fact).startswith("limits 2 flows to 53.")
    assert abs(from_utc(str(one.since)) - 6 * DAY) <= DAY
    assert "own rates until 1970-01-0" in (one.expected_source or "")
    assert days[10][-1] == ()  # after the repair


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of two days in which both flows became 3 % slower at noon of the first."""
    folder = tmp_path_factory.mktemp("state")
    service = Service(folder, 2, 0.03, DAY)
    for _ in range(48):
        service.hour()
    service.recorder.close()
    return folder


def drifts(folder: Path, memory: Memory) -> list[object]:
    (source,) = Recorder().sources(str(folder), memory, 2 * DAY, 0.0)
    return list(source.read(Clock()))


def test_an_acceptance_and_another_device_begin_a_new_series(drifted: Path) -> None:
    assert len(drifts(drifted, Memory())) == 4  # before and since, of two flows
    assert drifts(drifted, Memory(accepted=1.5 * DAY)) == []
    recorder, service = Recorder(), Service(drifted, 3, 0.0, 0.0)
    (report,) = [cycle(service.host, [], Site(), Memory())[1]]
    for at, uuid in ((0.0, "a"), (1.5 * DAY, "b")):
        inventory = Inventory(taken_at=at, devices=(Item(kind="gpu", key="0000:18:00.0", identity=uuid),))
        recorder.add(str(drifted), report, at, Memory(last=inventory))
    recorder.close()
    assert drifts(drifted, Memory()) == []


def test_it_is_evaluated_once_an_hour_and_survives_a_damaged_file(tmp_path: Path) -> None:
    known = copy(("gpu0", ROOT), 55.0)
    memory, recorder = Memory(collected={"drift": (known,)}), Recorder()
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    (source,) = recorder.sources(str(tmp_path), memory, DAY, 100.0)
    assert source.read(Clock()) == [known]
    assert recorder.sources(str(tmp_path), memory, DAY, 100.0 + EVERY - 1) == ()
    assert len(recorder.sources(str(tmp_path), memory, DAY, 100.0 + EVERY)) == 1


def test_the_daemon_runs_it(tmp_path: Path) -> None:
    node = Node(tmp_path)
    names = [[run.name for run in node.cycle().runs] for _ in range(2)]
    assert all("drift" in runs for runs in names)  # the second is the run of the first cycle
    assert node.daemon.memory.collected["drift"][-1].at == node.host.recorded.taken  # type: ignore[union-attr]
