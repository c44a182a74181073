"""GPUs that the driver numbers anew during a run of the service: vfio, drain, a reload of the driver.

nvml.h, nvmlDeviceGetHandleByIndex: "the order in which NVML enumerates devices has no guarantees of consistency between
reboots". The driver is a stub.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory, cycle
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.renumbering import found_again, gpu_places, waiting
from linkgauge.agent.service import checkpoint
from linkgauge.agent.state.acceptance import Acceptance
from linkgauge.models.facts.gpu import Gpu, GpuLink, GpuPair
from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.models.report import Origin, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.gpu.nvml import state
from linkgauge.probes.gpu.nvml_topology import wiring
from linkgauge.probes.host.recorded import Recorded
from tests.support.gpu.nvml_machine import bound
from tests.support.gpu.nvml_stub import BUSES
from tests.support.nodes.small_nodes import source_of
from tests.support.nodes.trees import tree

START = 1.8e9
EVERY = range(8)
# Counters that do not move. Each GPU has more than the one before it, and none has too many for the time since boot.
WORN = "".join(
    f'[gpu.{number}.fields]\n"3" = {20_000 + 9_000 * number}\n"161.3" = {10 + 8 * number}\n'
    f'"270" = {60_000_000_000 * number}\n'
    for number in EVERY
)


@dataclass
class Clock:
    """A machine whose driver has some of the GPUs, at a time that the test sets."""

    files: Recorded = field(default_factory=lambda: tree({}))
    at: float = START
    origin: Origin = "live"

    def read(self, path: str) -> str | None:
        return self.files.read(path)

    def list(self, path: str) -> list[str]:
        return self.files.list(path)

    def resolve(self, path: str) -> str | None:
        return self.files.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        yield from {"nvml": state, "nvml_wiring": wiring}[what]()

    def now(self) -> float:
        return self.at


@dataclass
class Service:
    """A service that reads the driver each minute, and the wiring only in its first cycle."""

    driver: Callable[[str], Path]
    machine: Clock
    memory: Memory = field(default_factory=Memory)

    def cycle(self, present: list[int], wiring_too: bool = False) -> Report:
        """The report of the next minute, with these GPUs."""
        self.machine.at += 60
        addresses = [f"0000:{BUSES[number]:02x}:00.0" for number in present]
        self.machine.files = tree(bound(*addresses))
        self.driver(f"gpus = {present}\n{WORN}")
        names = ("gpus", "gpu_wiring") if wiring_too else ("gpus",)
        booted = source_of(Node(key="node", virtual=False, booted=START - 30 * 86400), name="node")
        due = [booted, *(one for one in SOURCES if one.name in names)]
        self.memory, report = cycle(self.machine, due, Site(), self.memory)
        return report


@pytest.fixture
def service(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Service:
    machine = Clock()
    monkeypatch.setattr(time, "time", lambda: machine.at)
    return Service(driver, machine)


def shown(report: Report) -> dict[tuple[str, str], str]:
    return {(one.code, one.subject): one.severity for one in report.findings}


@pytest.mark.parametrize(
    "present",
    [
        [[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7]],  # GPU 0 belongs to a guest (vfio)
        [[1, 2, 3, 4, 5, 6, 7], [*EVERY]],  # drained for a while
        [[0, 2, 3, 4, 5, 6, 7], [*EVERY]],
        [[2, 3], [*EVERY]],
        [[7, 6, 5, 4, 3, 2, 1, 0], [*EVERY]],  # a reload in another order
    ],
)
def test_constant_counters_stay_constant_when_gpus_get_other_numbers(
    service: Service, present: list[list[int]]
) -> None:
    before = [service.cycle([*EVERY], wiring_too=True), service.cycle([*EVERY])][-1]
    assert shown(before) == {}
    for several in [*present, [*EVERY]]:
        report = service.cycle(several)
        there = {f"0000:{BUSES[number]:02x}:00.0" for number in several}
        new = {key for key in shown(report).keys() - shown(before).keys() if key[1] in there}
        assert new == set()
    assert shown(report) == shown(before)


def test_a_restart_of_the_service_knows_which_gpu_a_counter_belongs_to(service: Service, tmp_path: Path) -> None:
    service.cycle([*EVERY], wiring_too=True)
    before = service.cycle([*EVERY])
    assert checkpoint.save(str(tmp_path), service.memory, service.machine.at) is None
    service.memory = checkpoint.load(str(tmp_path), Memory(), service.machine.at)
    report = service.cycle([*EVERY][1:], wiring_too=True)
    assert shown(report).keys() - shown(before).keys() == set()


def test_a_counter_that_rises_is_still_seen_after_renumbering(service: Service) -> None:
    service.cycle([*EVERY], wiring_too=True)
    service.cycle([*EVERY][1:])
    service.machine.at += 60
    service.driver(f"gpus = {[*EVERY][1:]}\n{WORN}".replace("29000", "49000"))
    service.memory, report = cycle(
        service.machine, [one for one in SOURCES if one.name == "gpus"], Site(), service.memory
    )
    assert ("gpu-ecc", f"0000:{BUSES[1]:02x}:00.0") in shown(report)


HERE = Evidence("here", "x")


def counted(about: Flow | str, value: float = 1.0) -> Observation:
    return Observation(about=about, quantity="rate", unit="count", value=value, at=1.0, evidence=HERE)


def test_stored_observations_wait_under_the_places_of_their_gpus() -> None:
    places = gpu_places([Gpu(key="gpu0", address="0000:13:00.0"), Gpu(key="gpu1", uuid="GPU-1"), Gpu(key="gpu2")])
    assert places == {"gpu0": "gpu at 0000:13:00.0", "gpu1": "gpu at GPU-1"}
    now = [counted("gpu0"), counted("gpu1/nvlink4"), counted(Flow("copy", ("numa0", "gpu1"))), counted("0000:13:00.0")]
    stored = waiting(now, places)
    assert [one.about for one in stored] == [
        "gpu at 0000:13:00.0",
        "gpu at GPU-1/nvlink4",
        Flow("copy", ("numa0", "gpu at GPU-1")),
        "0000:13:00.0",
    ]
    assert list(found_again(stored, places)) == now
    swapped = found_again(stored, {"gpu1": places["gpu0"], "gpu0": places["gpu1"]})
    assert [one.about for one in swapped] == [
        "gpu1",
        "gpu0/nvlink4",
        Flow("copy", ("numa0", "gpu0")),
        "0000:13:00.0",
    ]


def test_facts_that_were_not_read_again_follow_their_gpu(service: Service) -> None:
    service.cycle([*EVERY], wiring_too=True)
    before = facts(service.memory.collected["gpu_wiring"])
    service.cycle([*EVERY][1:])
    after = facts(service.memory.collected["gpu_wiring"])
    assert len(after) == len(before) - 1 - 18 - 7  # without GPU 0, its links and its pairs
    assert after["gpu0"] == replace(before["gpu1"], key="gpu0")
    assert after["gpu0-gpu6"] == replace(before["gpu1-gpu7"], key="gpu0-gpu6", a="gpu0", b="gpu6")
    assert after["gpu3/nvlink5"] == replace(before["gpu4/nvlink5"], key="gpu3/nvlink5")


def test_a_gpu_without_an_answer_keeps_its_wiring(service: Service) -> None:
    service.cycle([*EVERY], wiring_too=True)
    before = service.memory.collected["gpu_wiring"]
    service.cycle([*EVERY][:-1])
    assert service.memory.collected["gpu_wiring"] == before
    assert service.memory.gpus["gpu7"] == f"gpu at 0000:{BUSES[7]:02x}:00.0"


def facts(records: tuple[Record, ...]) -> Mapping[str, Any]:
    return {one.key: one for one in records if isinstance(one, Gpu | GpuLink | GpuPair)}


def test_an_acceptance_that_a_reload_reads_has_the_present_numbers() -> None:
    """It is stored under the places of the GPUs. The numbers do not change in the next cycle."""
    gpus = {"gpu1": "gpu at 0000:1b:00.0"}
    stored = Observation(
        about="gpu at 0000:1b:00.0", quantity="replays", unit="count", value=7, at=START, evidence=Evidence("a", "b")
    )
    memory = checkpoint.with_acceptance(Memory(gpus=gpus), Acceptance(at=START, baseline=(stored,)))
    assert [(one.about, memory.accepted) for one in memory.baseline] == [("gpu1", START)]
