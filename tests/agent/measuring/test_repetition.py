"""Repetitions of copies: they stay within the budget, leave room for the other probes, and a capture replays them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from linkgauge.agent.measuring import session
from linkgauge.agent.measuring.budget import BUDGETS, RESERVED, Budget
from linkgauge.agent.measuring.registry import REPEATABLE
from linkgauge.agent.measuring.session import MeasurementOptions, Session
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.diagnosis.repetition import SimultaneousFlows
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.measure.gpu.copy_plan import gpus_of, nearest_memory
from linkgauge.probes.measure.gpu.copy_request import flows, parsed
from linkgauge.probes.measure.probe import Probe
from tests.support.nodes.described import node, report_of
from tests.support.nodes.small_nodes import Clock

SIZE, SCATTER = 1 << 28, 0.02


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lock and no hold of this machine."""
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The clock of the session stands still until time passes."""
    at = [0.0]
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: at[0]))

    def pass_(seconds: float) -> None:
        at[0] += seconds

    return pass_


def single_copies(report: Report) -> frozenset[SimultaneousFlows]:
    """All copies of one GPU with its memory, alone."""
    near = {gpu: nearest_memory(report.topology, gpu) for gpu in gpus_of(report.topology)}
    return frozenset(frozenset({ends}) for pair in near.items() for ends in (pair, pair[::-1]))


def stages(report: Report, options: MeasurementOptions, pass_time: Callable[[float], None]) -> list[list[Probe]]:
    """The probes of each stage if the copies with the host are never decided. Each takes as long as planned."""
    measurement, found = Session(options, Clock()), list[list[Probe]]()
    undecided: frozenset[SimultaneousFlows] = frozenset()
    while not found or found[-1]:
        found.append([])
        for source in measurement.probes(report, undecided):
            if isinstance(probe := planned_of(source.read), Probe):
                found[-1].append(probe)
                pass_time(probe.seconds)
        undecided = single_copies(report)
    assert list(measurement.probes(report, undecided)) == []
    return found[:-1]


def planned_of(read: object) -> object:
    """The probe behind a source that Ctrl-C can end."""
    cells = getattr(read, "__closure__", None) or ()
    return next((cell.cell_contents for cell in cells if isinstance(cell.cell_contents, Probe)), read)


@pytest.mark.parametrize("effort", ["quick", "full"])
@pytest.mark.parametrize("budget", [None, Budget(60, 100e12), Budget(150, 4e12)], ids=str)
def test_all_stages_together_stay_within_the_budget(
    effort: str, budget: Budget | None, pass_time: Callable[[float], None]
) -> None:
    assert effort in ("quick", "full")
    options = MeasurementOptions(effort=effort, budget=budget, force=True)  # type: ignore[arg-type]
    every = [one for stage in stages(report_of(node("hgx-h100")), options, pass_time) for one in stage]
    most = budget or BUDGETS[options.effort]
    assert every
    assert sum(one.seconds for one in every) <= most.seconds
    assert sum(one.bytes for one in every) <= most.bytes


def test_copies_are_repeated_before_the_other_probes_and_leave_them_their_share(
    pass_time: Callable[[float], None],
) -> None:
    options = MeasurementOptions(effort="full", force=True)
    found = stages(report_of(node("hgx-h100")), options, pass_time)
    copies = [{one.name for one in stage} <= set(REPEATABLE) for stage in found]
    last = copies.index(False)
    assert last > 2  # copies, and more than one repetition
    others = sum(one.seconds for one in found[last])
    assert others > 0.9 * RESERVED * BUDGETS["full"].seconds
    assert {"device_memory", "host_memory", "port_loopback"} <= {one.name for one in found[last]}


@dataclass
class Noisy(Recorded):
    """A recorded node whose copies scatter. The link of one GPU to the host loses 6 %."""

    slow: str = ""
    chance: Random | None = None
    asked: int = 0

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        if what not in REPEATABLE:
            yield from super().call(what, *args, deadline=deadline)
            return
        self.asked += 1
        assert self.chance
        for run in parsed(args).runs:
            for flow in flows(run, SIZE) if len(run) == 1 else ():
                yield self.rate(flow)

    def rate(self, flow: Flow) -> Observation:
        """One measurement."""
        assert self.chance
        host = not all(end.startswith("gpu") for end in flow.ends)
        share = 0.94 if host and self.slow in flow.ends else 1.0
        rate = (25.5e9 if host else 90.5e9) * share * self.chance.gauss(1, SCATTER)
        return Observation(
            about=flow,
            quantity="rate",
            unit="bytes_per_second",
            value=rate,
            at=self.taken + self.asked,
            busy=True,
            evidence=Evidence("cuMemcpyAsync", "copies of 256 MiB"),
        )


def test_a_capture_replays_every_repetition() -> None:
    recorded = node("perlmutter")
    host = Noisy(recorded.taken, recorded.entries, recorded.calls, slow="gpu2", chance=Random(1))
    recording = Recording(host)
    options = MeasurementOptions(effort="full", force=True, only=frozenset(REPEATABLE))
    live = diagnose(recording, SOURCES, Session(options, recording).probes, Site()).report
    assert host.asked > len(REPEATABLE) * 3  # a first measurement of near and far copies, and repetitions
    capture = parse(dump(recording.recorded()))
    replayed = diagnose(capture, SOURCES, Session(options, capture).probes, Site()).report
    assert [(one.code, one.subject) for one in live.findings if one.severity != "info"] == [
        ("bandwidth-low", "0000:82:00.0")
    ]
    assert rates(replayed) == rates(live)
    assert [one for one in replayed.findings if one.kind == "measurement"] == [
        one for one in live.findings if one.kind == "measurement"
    ]


def rates(report: Report) -> dict[Flow, float | None]:
    """The rate of each flow."""
    return {level.flow: level.observed for level in report.levels}
