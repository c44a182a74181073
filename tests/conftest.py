"""Fixtures for more than one test file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pynvml
import pytest
from hypothesis import settings

from linkgauge.probes.calls import hold
from linkgauge.probes.gpu import nvml_link_memory, nvml_threads
from tests.support.gpu import fake_nvml, nvml_stub
from tests.support.nodes.daemon_nodes import Node

# Tests have no time limits, because machines can be slow. In CI the examples are the same in each run. 30 examples keep
# the fast part of the suite under three minutes; LINKGAUGE_EXAMPLES=1000 searches longer.
_EXAMPLES = int(os.environ.get("LINKGAUGE_EXAMPLES", "30"))
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


def pytest_configure(config: pytest.Config) -> None:
    """Give the programs that tests start two folders of this run.

    Each process of pytest has its own locks, so tests that measure do not wait for each other. The interpreter compiles
    each module once, even if it must not write beside the modules.
    """
    folder = TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    for name, mode in (("", 0o755), ("locks", 0o1777), ("compiled", 0o755)):  # some tests run as another user
        path = Path(folder.name, name)
        path.mkdir(exist_ok=True)
        path.chmod(mode)
    os.environ["LINKGAUGE_LOCK_DIR"] = f"{folder.name}/locks"
    os.environ["PYTHONPYCACHEPREFIX"] = f"{folder.name}/compiled"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


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
