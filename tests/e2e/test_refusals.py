"""A machine in use is not measured: with real load, by the real command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import psutil
import pytest

from linkgauge.probes.calls import hold
from tests.support.programs import slurm_here

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

WORK = "a, b = bytearray(1 << 27), bytearray(1 << 27)\nwhile True: a[:] = b"


@pytest.fixture(autouse=True)
def _no_slurmd() -> Iterator[None]:
    """No test of Slurm runs beside this one: its slurmd is a reason of its own not to measure."""
    with slurm_here.alone():
        yield


@pytest.fixture
def _memory_bound(_no_slurmd: None) -> Iterator[None]:
    """Two threads' worth of copying memory, in processes, once it has begun."""
    with (
        subprocess.Popen([sys.executable, "-c", WORK]) as first,
        subprocess.Popen([sys.executable, "-c", WORK]) as more,
    ):
        both = [psutil.Process(one.pid) for one in (first, more)]
        end = time.monotonic() + 60
        while any(one.cpu_times().user < 0.3 for one in both):
            assert time.monotonic() < end
            time.sleep(0.01)
        yield
        for one in both:
            one.kill()


def diagnosed(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "linkgauge", "diagnose", "--only", "host_memory", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    return done


@pytest.fixture(autouse=True)
def _a_lock_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))


@pytest.mark.usefixtures("_memory_bound")
def test_a_memory_bound_program_is_not_disturbed() -> None:
    done = diagnosed()
    text = " ".join(done.stdout.split())
    assert "not measured: the CPUs are " in text
    assert "MEASURED" not in text
    assert done.stderr == ""


@pytest.mark.usefixtures("_memory_bound")
@pytest.mark.slow
def test_force_says_what_it_overrides() -> None:
    done = diagnosed("--force", "--format", "json")
    assert done.stderr.startswith("Warning: measured by force, although the CPUs are ")
    (gap,) = (one for one in json.loads(done.stdout)["not_checked"] if one["what"] == "idle")
    assert gap["why"].startswith("measured by force, although the CPUs are ")


def test_force_does_not_override_a_hold() -> None:
    hold.hold(60, 7)
    done = diagnosed("--force")
    assert f"not measured: held by {getuser()}, process 7, for another " in " ".join(done.stdout.split())
    assert done.stderr == ""
