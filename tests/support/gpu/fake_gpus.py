"""Eight H100 simulated by two real libraries, libcuda.so.1 and libnvidia-ml.so.1, which a file controls at run time."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

SOURCE = Path(__file__).parents[4] / "shared/tools/testbed/fake"
BUSES = ("13", "14", "1a", "1b", "63", "64", "6a", "6b")
ADDRESSES = {f"gpu{number}": f"0000:{bus}:00.0" for number, bus in enumerate(BUSES)}
# Time is simulated. No bytes move, so the tests stay fast.
_HEALTHY = "cuda.copy=0\n" + "".join(f"gpu.{name[3:]}.bus_id={address}\n" for name, address in ADDRESSES.items())


def fake_gpus(folder: Path, monkeypatch: pytest.MonkeyPatch, faults: str = "") -> Path:
    """Let child processes find the libraries. Returns the control file. Skips the test if they cannot be built."""
    if not SOURCE.is_dir():
        pytest.skip(f"needs {SOURCE}")
    if not (shutil.which("make") and shutil.which("gcc")):
        pytest.skip("needs make and gcc")
    pytest.importorskip("cuda.bindings.driver", reason="needs the package cuda-bindings")
    file = folder / "gpus.conf"
    file.write_text(_HEALTHY + faults)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{_library()}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}")
    monkeypatch.setenv("FAKE_GPU_FILE", str(file))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return file


@cache
def _library() -> str:
    folder = mkdtemp(prefix="fake-gpus-")
    subprocess.run(["make", "-s", "-C", str(SOURCE), f"OUT={folder}"], check=True, timeout=120)
    return folder
