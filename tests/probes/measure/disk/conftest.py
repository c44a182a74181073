"""Folders on a disk. The folders of other tests are in memory, which has no extents and is not read past the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)
