"""Persistent child processes: one answer after the other. A hanging call delays no other call and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path

import psutil
import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.machine import Mount
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.calls import hold
from linkgauge.probes.calls.timeouts import hung, no_answer
from linkgauge.probes.calls.worker import Workers
from tests.support.programs.hanging_mount import hanging_mount
from tests.support.waiting import until, with_deadline

pytestmark = pytest.mark.slow

LONG = 60.0  # seconds; no test waits for so long
GPU = Gpu(key="gpu0", name="H100")
ANSWERS = """
import os, signal, sys
for number, line in enumerate(sys.stdin):
    print({gpu!r}, flush=True)
    {then}
    print(".", flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock folder without a hold on the machine."""
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))
    return tmp_path


@contextmanager
def workers(folder: Path | None = None, then: str = "pass") -> Iterator[Workers]:
    """The real children, or children that answer each call with one GPU and run the given code."""
    command = (sys.executable, "-m", "linkgauge.probes.calls.entrypoint")
    if folder:
        (folder / "child.py").write_text(ANSWERS.format(gpu=encode(GPU), then=then))
        command = (sys.executable, str(folder / "child.py"), "")
    some = Workers(command)
    try:
        yield some
    finally:
        some.close()


def ask(some: Workers, what: str = "nvml", *args: str, seconds: float = LONG) -> list[Record]:
    return list(some.call(what, args, seconds))


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_the_real_one_answers_again_and_again(tmp_path: Path) -> None:
    before = children()
    with workers() as some:
        for _ in range(3):
            (said,) = ask(some, "statvfs", str(tmp_path))
            assert isinstance(said, Mount)
        assert len(children() - before) == 1
        (said,) = ask(some, "statvfs", "/none")
        assert said == NotChecked(
            what="Mount.free",
            subject="/none",
            reason=Reason.NOT_INSTALLED,
            path="statvfs",
            detail="No such file or directory",
        )
        why = "KeyError: 'nothing'"
        assert ask(some, "nothing") == [NotChecked(what="nothing", subject="node", reason=Reason.FAULT, detail=why)]
        assert len(children() - before) == 1  # a failed call ends no child
    assert children() == before


def test_the_driver_has_a_child_of_its_own(tmp_path: Path) -> None:
    before = children()
    with workers(tmp_path) as some:
        assert [ask(some, what) for what in ("nvml", "nvml_wiring", "statvfs", "ethtool")] == [[GPU]] * 4
        assert len(children() - before) == 2
    assert children() == before


def test_what_hangs_is_killed_and_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    with workers(tmp_path, "if 'statvfs' in line: signal.pause()") as some:
        assert ask(some, "ethtool") == [GPU]
        seconds, said = with_deadline(lambda deadline: ask(some, "statvfs", seconds=deadline), 2)
        lost = NotChecked(what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail=no_answer(seconds))
        assert said == [GPU, lost]
        until(lambda: some.stuck == 0)
        assert ask(some, "ethtool") == [GPU]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
def test_what_cannot_be_killed_is_never_asked_twice_at_once(tmp_path: Path) -> None:
    place = tmp_path / "mount"
    place.mkdir()
    before = children()
    with workers() as some:
        ask(some, "statvfs", str(tmp_path))  # it has begun
        with hanging_mount(place):
            (first,) = ask(some, "statvfs", str(place), seconds=3)
            assert first == NotChecked(what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail=no_answer(3))
            stuck = children() - before
            assert some.stuck == 1
            (again,) = ask(some, "statvfs", str(tmp_path))
            assert isinstance(again, NotChecked)
            assert again.why.endswith("asked before, still hangs in the kernel")
            assert hung(again)
            assert some.stuck == 1
            assert not any(map(hung, ask(some, "pci_config")))  # the other calls are made as before
        assert ends(stuck)
        (said,) = ask(some, "statvfs", str(tmp_path))
        assert isinstance(said, Mount)
        assert some.stuck == 0


def test_a_gpu_that_hangs_in_a_thread_of_the_child_ends_the_child(tmp_path: Path) -> None:
    """Otherwise each call would add a thread."""
    lost = Gpu(key="gpu1", failure=no_answer(8), failure_reason=Reason.NO_ANSWER)
    with workers(tmp_path, f"print({encode(lost)!r})") as some:
        before = children()
        assert ask(some) == [GPU, lost]
        assert children() == before


def test_children_that_end_are_started_again(tmp_path: Path) -> None:
    with workers(tmp_path, "os._exit(7)") as some:
        ended = NotChecked(what="Gpu", subject="node", reason=Reason.OTHER, detail="its process ended with 7")
        assert [ask(some), ask(some)] == [[GPU, ended]] * 2
    with workers(tmp_path) as some:
        before = children()
        assert ask(some) == [GPU]
        (child,) = children() - before
        os.kill(child, signal.SIGKILL)  # as the kernel does where memory is short
        psutil.Process(child).wait(LONG)
        assert ask(some) == [GPU]


def test_rubbish_loses_only_that_line(tmp_path: Path) -> None:
    with workers(tmp_path, "print('[rubbish')") as some:
        for _ in range(2):
            first, second = ask(some)
            assert first == GPU
            assert isinstance(second, NotChecked)
            assert second.why.startswith("an answer that makes no sense: ")


def test_who_stops_listening_gets_no_old_answers(tmp_path: Path) -> None:
    with workers(tmp_path, "signal.pause()") as some:
        for said in some.call("nvml", (), LONG):
            assert said == GPU
            break
        seconds, again = with_deadline(lambda deadline: ask(some, "nvml_use", seconds=deadline), 2)
    lost = NotChecked(what="nvml_use", subject="node", reason=Reason.NO_ANSWER, detail=no_answer(seconds))
    assert again == [GPU, lost]


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    some = Workers((str(tmp_path / "none"),))
    why = "its process ended: No such file or directory"
    assert ask(some) == [NotChecked(what="Gpu", subject="node", reason=Reason.OTHER, detail=why)]


def test_what_a_child_has_started_ends_with_it(tmp_path: Path) -> None:
    script = "import subprocess; p = subprocess.Popen(['sleep', '1000']); print('[', p.pid, flush=True); p.wait()"
    with workers(tmp_path, script) as some:
        before = children()
        answers = some.call("ethtool", (), LONG)
        assert next(answers) == GPU
        next(answers)
        started = children() - before
        assert len(started) == 2
        some.close()
        assert ends(started)


def ends(pids: set[int]) -> bool:
    """Whether all of them end soon. A zombie whose parent is process 1 counts as ended."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            return True
    return False


def test_no_child_outlives_a_service_that_was_killed() -> None:
    """After kill -9 the service cannot end its children. The kernel ends them."""
    script = (
        "import sys\nfrom linkgauge.probes.calls.worker import Workers\nsome = Workers()\n"
        "print(*some.call('statvfs', ('/',), 60), flush=True)\nsys.stdin.read()"
    )
    pipe, path = subprocess.PIPE, os.pathsep.join(sys.path)
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**os.environ, "PYTHONPATH": path}) as service:
        assert service.stdout
        assert b"Mount(" in service.stdout.readline()
        left = {child.pid for child in psutil.Process(service.pid).children()}
        assert len(left) == 1
        service.kill()
    assert ends(left)


def test_release_ends_the_child_of_the_driver_alone(tmp_path: Path) -> None:
    before = children()
    with workers(tmp_path) as some:
        assert [ask(some), ask(some, "ethtool")] == [[GPU], [GPU]]
        assert some.release() is None
        hold.hold(LONG, 7, hold.RELEASE)
        assert str(some.release()).startswith(f"released by {getuser()}, process 7, for another ")
        assert len(children() - before) == 1
        (lost,) = ask(some)
        assert isinstance(lost, NotChecked)
        assert lost.why.startswith(f"the driver is released by {getuser()}, process 7, for another ")
        assert ask(some, "ethtool") == [GPU]
        hold.end(hold.RELEASE)
        assert ask(some) == [GPU]


def test_release_does_not_wait_for_a_driver_that_hangs(tmp_path: Path) -> None:
    with workers(tmp_path, "signal.pause()") as some:
        before = children()
        answers = some.call("nvml", (), LONG)
        assert next(answers) == GPU
        hold.hold(LONG, 7, hold.RELEASE)
        (lost,) = answers
        assert isinstance(lost, NotChecked)
        assert lost.why.startswith(f"the driver is released by {getuser()}, process 7, for another ")
        assert children() == before


def test_release_does_not_wait_for_others_either(tmp_path: Path) -> None:
    with workers(tmp_path, "if 'statvfs' in line: signal.pause()") as some:
        before = children()
        assert ask(some) == [GPU]
        driver = children() - before
        answers = some.call("statvfs", (), 5)
        assert next(answers) == GPU
        hold.hold(LONG, 7, hold.RELEASE)
        assert list(answers) == [
            NotChecked(what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail=no_answer(5))
        ]
        assert ends(driver)
