"""`linkgauge release` while the service runs: the driver is closed, whatever the service does at that moment."""

from __future__ import annotations

import os
import subprocess
import sys
from getpass import getuser
from pathlib import Path
from threading import Thread

import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.calls.child import Children
from linkgauge.probes.calls.driver_lock import is_open
from linkgauge.probes.calls.hold import RELEASE, active_request, hold
from linkgauge.probes.calls.worker import Workers
from tests.support.gpu.fake_nvml import BUSES

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LONG = 60.0  # seconds


@pytest.fixture
def gpus(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that steers eight GPUs of a driver that is a real library."""
    file = tmp_path / "gpus.conf"
    file.write_text("".join(f"gpu.{number}.bus_id=0000:{bus}:00.0\n" for number, bus in enumerate(BUSES)))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{library}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}")
    monkeypatch.setenv("FAKE_GPU_FILE", str(file))
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))
    return file


def release(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "linkgauge", "release", *options]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)


def test_it_closes_the_driver_and_keeps_it_closed(gpus: Path) -> None:
    workers = Workers()
    try:
        assert len([one for one in workers.call("nvml", (), LONG) if isinstance(one, Gpu)]) == 8
        assert is_open()  # also between two questions
        with release("--for", "1m") as asking:
            while asking.poll() is None:
                workers.release()  # as the service does once a second
            assert asking.returncode == 0
        assert not is_open()
        (lost,) = workers.call("nvml", (), LONG)
        assert isinstance(lost, NotChecked)
        assert lost.why.startswith("the driver is released by ")
        assert not is_open()
        with release("--end") as asking:
            assert asking.wait(LONG) == 0
        assert len([one for one in workers.call("nvml", (), LONG) if isinstance(one, Gpu)]) == 8
    finally:
        workers.close()
    assert not is_open()


def test_it_does_not_wait_for_a_gpu_that_hangs(gpus: Path) -> None:
    """Which is when a reset is wanted."""
    with gpus.open("a") as faults:
        faults.write("gpu.3.delay_ms=60000\n")
    workers, records = Workers(), list[Record]()
    asking = Thread(target=lambda: records.extend(workers.call("nvml", (), LONG)))
    asking.start()
    try:
        while not is_open():
            pass
        with release("--for", "1m") as releasing:
            assert releasing.wait(LONG) == 0
        assert not is_open()
        asking.join(LONG)
        assert isinstance(records[-1], NotChecked)
        assert records[-1].why.startswith("the driver is released by ")
    finally:
        workers.close()


def test_a_call_that_waited_does_not_open_the_driver_after_the_release(gpus: Path) -> None:
    """A child that was on its way when the release came."""
    hold(LONG, 7, RELEASE)
    (answer,) = Children().call("nvml", (), LONG)
    assert isinstance(answer, NotChecked)
    assert answer.why.startswith(f"the driver is released by {getuser()}, process 7, for another ")
    assert not is_open()


def test_release_names_the_process_that_keeps_the_driver(gpus: Path) -> None:
    """A process that nobody ends: exit code 1, for a script that goes on only where the driver is closed."""
    workers = Workers()
    try:
        assert len(list(workers.call("nvml", (), LONG))) > 8
        with release() as asking:
            _, errors = asking.communicate(timeout=LONG)
        assert asking.returncode == 1
        assert errors == "a linkgauge process has the driver open, for more than 5 s\n"
        assert active_request("release")  # nor does it open it again
    finally:
        workers.close()


def test_a_pipe_as_lock_file_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))
    os.mkfifo(tmp_path / "linkgauge.driver")
    asking = Thread(target=is_open, daemon=True)
    asking.start()
    asking.join(5)
    assert not asking.is_alive()
