"""NVIDIA GPUs: the driver is called only if the kernel shows GPUs; captures; a driver that hangs."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.models.facts.gpu import Driver, Gpu, GpuPair
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.models.site.schema import Site
from linkgauge.probes.calls.timeouts import hung, no_answer, stuck
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.gpu.gpus import read_gpu_wiring, read_gpus
from linkgauge.probes.host.entries import Folder, UnreadableFile
from linkgauge.probes.host.recorded import Recorded, dump, parse
from tests.support.gpu import nvml_stub
from tests.support.gpu.nvml_machine import BOUND, bound, machine
from tests.support.nodes.trees import tree

STUB = (sys.executable, str(Path(nvml_stub.__file__)))
A, B, C = "0000:1b:00.0", "0000:43:00.0", "0000:52:00.0"


def bound_to(*addresses: str) -> Driver:
    """The driver as sysfs shows it."""
    cites = {"version": Evidence("sys/module/nvidia/version", "580.95.05")}
    return Driver(key="nvidia", version="580.95.05", bound=addresses, cites=cites)


def replayed(lines: Sequence[Record], *addresses: str) -> list[Record]:
    """The records of the reader for this answer of the call."""
    calls: dict[tuple[str, ...], tuple[str, ...]] = {("nvml",): tuple(map(encode, lines))}
    return list(read_gpus(tree(bound(*addresses), calls)))


@pytest.mark.parametrize("reader", [read_gpus, read_gpu_wiring])
def test_without_a_gpu_not_a_word(reader: object) -> None:
    assert callable(reader)
    for files in ({}, bound(), {"sys/module/nvidia/version": "580.95.05"}):
        assert list(reader(tree(files))) == []


def test_what_was_said_is_passed_on() -> None:
    said = [Gpu(key="gpu0", name="H100", address=A), Gpu(key="gpu1", name="H100", address=B)]
    assert replayed(said, A, B) == [bound_to(A, B), *said]


def test_the_drain_state_is_read_only_of_gpus_that_the_driver_does_not_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call starts a process and opens the driver: not in each cycle of a healthy node."""
    asked: list[tuple[str, ...]] = []
    one = Gpu(key="gpu0", name="H100", address=A)
    answer = [Driver(key="nvidia", gpus=1), one]
    host = tree(bound(A), {("nvml",): tuple(map(encode, answer))})
    call = type(host).call

    def counted(self: Recorded, what: str, *args: str, deadline: float) -> Iterator[Record]:
        asked.append((what, *args))
        return call(self, what, *args, deadline=deadline)

    monkeypatch.setattr(type(host), "call", counted)
    assert list(read_gpus(host)) == [bound_to(A), *answer]
    assert asked == [("nvml",)]
    list(read_gpus(tree(bound(A, B), {("nvml",): tuple(map(encode, answer))})))
    assert asked[1:] == [("nvml",), ("nvml_drain", B)]


def test_a_capture_from_before_the_driver_was_asked() -> None:
    why = NotChecked(what="Gpu", subject="node", reason=Reason.OTHER, detail="was not recorded")
    assert list(read_gpus(tree(bound(A)))) == [bound_to(A), why]
    assert list(read_gpu_wiring(tree(bound(A)))) == [
        NotChecked(what="GpuPair", subject="node", reason=Reason.OTHER, detail="was not recorded")
    ]


def test_sysfs_that_would_not_say() -> None:
    host = tree({BOUND: Folder(UnreadableFile(errno.EIO, "Input/output error"))})
    path, why = BOUND, "Input/output error"
    assert list(read_gpus(host)) == [
        NotChecked(what="Gpu", subject="node", reason=Reason.UNREADABLE, path=path, detail=why)
    ]


def test_a_gpu_that_does_not_answer_is_where_no_other_is() -> None:
    lost = Gpu(key="gpu1", failure="GPU is lost")
    answered = [Gpu(key="gpu0", address=A), lost, Gpu(key="gpu2", address=C)]
    assert replayed(answered, A, B, C) == [bound_to(A, B, C), *answered, Gpu(key="gpu1", address=B)]
    # A container that shows one of three: the other two are not lost.
    assert replayed([lost], A, B, C) == [bound_to(A, B, C), lost]


@pytest.mark.parametrize("why", [no_answer(10), stuck("process 4711")])
def test_a_driver_on_which_the_whole_child_hangs(why: str) -> None:
    lost = NotChecked(what="Gpu", subject="node", reason=Reason.NO_ANSWER, detail=why)
    assert hung(lost)
    assert replayed([lost], A) == [
        bound_to(A),
        lost,
        Driver(key="nvidia", failure=why, failure_reason=Reason.NO_ANSWER),
    ]


def test_our_own_lack_is_no_hang() -> None:
    lost = NotChecked(what="Gpu", subject="node", reason=Reason.OTHER, detail="NVML Shared Library Not Found")
    assert not hung(lost)
    assert replayed([lost], A) == [bound_to(A), lost]


def test_a_child_that_hangs_before_it_can_watch_itself(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text("import signal\nprint('+', flush=True)\nsignal.pause()")  # "+": it is ready (calls/deadline.py)
    said = list(read_gpus(machine(bound(A), (sys.executable, str(script)), seconds=0.2)))
    why = "no answer within 0.2 s"
    lost = NotChecked(what="Gpu", subject="node", reason=Reason.NO_ANSWER, detail=why)
    assert said == [bound_to(A), lost, Driver(key="nvidia", failure=why, failure_reason=Reason.NO_ANSWER)]


def test_a_whole_report_and_its_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live through the stub of the driver. The capture gives the same report without the identity of the GPUs."""
    file = tmp_path / "driver.toml"
    file.write_text("gpus = 2\nfabric = { state = 3, cluster = '5f1e2d3c4b5a69788796a5b4c3d2e1f0' }")
    monkeypatch.setenv("NVML_STUB", str(file))
    host = Recording(machine(bound(A, B), STUB))
    live = list(read_gpus(host)) + list(read_gpu_wiring(host))
    assert [one.key for one in live if isinstance(one, GpuPair)] == ["gpu0-gpu1"]
    text = dump(scrub(host.recorded()))
    assert "GPU-00000000-0000-4000-8000-000000000001" in text
    assert "a1b2c3d4-0000-1111-2222" not in text
    assert "5f1e2d3c" not in text
    assert dump(scrub(parse(text))) == text
    then = parse(text)
    again = list(read_gpus(then)) + list(read_gpu_wiring(then))
    assert [named(one) for one in again] == [named(one) for one in live]
    report = diagnose(then, SOURCES, measure_nothing, Site()).report
    assert [run.name for run in report.runs if not run.ok] == []
    assert next(one.value for one in report.observations if one.quantity == "driver_calls") <= 100


def named(said: Record) -> str:
    """The records without identities."""
    lines = encode(said)
    return lines if not isinstance(said, Gpu) else encode(Gpu(key=said.key, name=said.name, address=said.address))
