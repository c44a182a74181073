"""Fixtures that more than one test file asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts how long anything takes, on however slow a machine.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    """Compare a text with the file that holds it; with LINKGAUGE_GOLDEN=write, write the file instead."""

    def compare(path: Path, text: str) -> None:
        if os.environ.get("LINKGAUGE_GOLDEN") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run once with LINKGAUGE_GOLDEN=write"
        assert text == path.read_text(encoding="utf-8")

    return compare
