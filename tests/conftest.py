"""Fixtures for more than one test file."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pynvml
import pytest
from hypothesis import settings

from linkgauge.probes.calls import hold
from linkgauge.probes.gpu import nvml_link_memory, nvml_threads
from tests.support.gpu import fake_nvml, nvml_stub
from tests.support.nodes.daemon_nodes import Node

# Examples have no deadline, because machines can be slow. In CI the examples are the same in each run. 20 examples keep
# CI within its time; LINKGAUGE_EXAMPLES=1000 searches longer.
_EXAMPLES = int(os.environ.get("LINKGAUGE_EXAMPLES", "20"))
settings.register_profile("unhurried", parent=settings(), deadline=None, max_examples=_EXAMPLES)
settings.register_profile(
    "ci",
    parent=settings(),
    deadline=None,
    max_examples=_EXAMPLES,
    derandomize=True,
    database=None,
    print_blob=True,
)
settings.load_profile("ci" if os.environ.get("CI") else "unhurried")


# Described nodes have thousands of files: tests that write them take half the time in memory. Docker gives 64 MB.
_MEMORY, _ENOUGH = "/dev/shm", 4 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Give the programs that tests start two folders of this run.

    They must end at Ctrl-C, also if pytest runs in the background, where a shell lets all programs ignore it.

    Each process of pytest has its own locks, so tests that measure do not wait for each other. The interpreter compiles
    each module once, even if it must not write beside the modules.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(OSError):
        if shutil.disk_usage(_MEMORY).free > _ENOUGH:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)
    folder = TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    for name, mode in (("", 0o755), ("locks", 0o1777), ("compiled", 0o755)):  # some tests run as another user
        path = Path(folder.name, name)
        path.mkdir(exist_ok=True)
        path.chmod(mode)
    os.environ["LINKGAUGE_LOCK_DIR"] = f"{folder.name}/locks"
    os.environ["PYTHONPYCACHEPREFIX"] = f"{folder.name}/compiled"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Keep what the modules of the tests made out of the garbage collection.

    With thousands of tests in memory, a collection after each 700 new objects (the default) takes a tenth of the time
    of a diagnosis.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True)
def _no_hold_remains() -> Iterator[None]:
    """End the hold or release that a test or its program leaves, so that the next test can measure."""
    yield
    for request in (hold.HOLD, hold.RELEASE):
        hold.end(request)


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    """Compare a text with a golden file. With LINKGAUGE_GOLDEN=write, write the file instead."""

    def compare(path: Path, text: str) -> None:
        if os.environ.get("LINKGAUGE_GOLDEN") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run once with LINKGAUGE_GOLDEN=write"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def booted_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel's clock say that this machine has run for a year: CI's machine may have booted minutes ago."""
    clock = time.clock_gettime
    year = 365 * 86400.0
    monkeypatch.setattr(time, "clock_gettime", lambda which: clock(which) + year * (which == time.CLOCK_BOOTTIME))


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Let pynvml load a stub of NVIDIA's driver that follows a text (nvml_stub.py)."""

    def load(text: str) -> Path:
        file = tmp_path / "driver.toml"
        file.write_text(text)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        monkeypatch.setattr(nvml_link_memory, "memories", {})
        monkeypatch.setattr(nvml_threads, "CONTROL", nvml_stub.parsed(text).get("device", str(file)))
        nvml_stub.install(file)
        return file

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "30")
    return load


@pytest.fixture
def service() -> Iterator[Callable[..., Node]]:
    """Services on recorded nodes (daemon_nodes.Node). Their threads end with the test."""
    with ExitStack() as stack:
        yield lambda folder, **options: stack.enter_context(closing(Node(folder, **options)))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a libnvidia-ml.so.1 that a file controls (fake_nvml.py)."""
    folder = tmp_path_factory.mktemp("nvml")
    fake_nvml.build(folder)
    return folder
