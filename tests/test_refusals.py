"""A machine that works for somebody is not measured: with real load, by the command that people run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

WORK = "a, b = bytearray(1 << 27), bytearray(1 << 27)\nwhile True: a[:] = b"


@pytest.fixture
def _memory_bound() -> Iterator[None]:
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


@pytest.mark.usefixtures("_memory_bound")
def test_a_memory_bound_program_is_not_disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))
    command = [sys.executable, "-m", "linkgauge", "diagnose", "--level", "quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    text = " ".join(done.stdout.split())
    assert "why not measured: the CPUs are " in text
    assert "MEASURED" not in text
