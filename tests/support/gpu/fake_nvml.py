"""A real library libnvidia-ml.so.1, and the PCI addresses of its GPUs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FAKE = Path(__file__).parents[4] / "shared/tools/testbed/fake"
BUSES = ("13", "14", "1a", "1b", "63", "64", "6a", "6b")


def build(folder: Path) -> None:
    """Build the library in the folder. Skips the test if that fails."""
    if not FAKE.is_dir():
        pytest.skip(f"needs {FAKE}")
    if not (shutil.which("make") and shutil.which("gcc")):
        pytest.skip("needs make and gcc")
    subprocess.run(["make", "-s", "-C", str(FAKE), f"OUT={folder}"], check=True, timeout=120)
