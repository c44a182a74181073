"""What a file system tells of where files hold data: holes and reserved stretches are left out, neighbours are one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linkgauge.models.facts.units import MIB
from linkgauge.probes.measure.disk.extents import Extent, extents


def told(path: Path) -> list[Extent]:
    file = os.open(path, os.O_RDONLY)
    try:
        return list(extents(file))
    except OSError as error:
        pytest.skip(f"the file system of the tests has no FIEMAP: {error.strerror}")
    finally:
        os.close(file)


def test_holes_and_reserved_stretches(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as stream:
        stream.write(os.urandom(2 * MIB))
        stream.seek(4 * MIB)
        stream.write(os.urandom(MIB))
        os.posix_fallocate(stream.fileno(), 6 * MIB, MIB)
        stream.truncate(9 * MIB)
        stream.flush()
        os.fsync(stream.fileno())
    assert told(path) == [Extent(0, 2 * MIB), Extent(4 * MIB, MIB)]


def test_a_file_in_very_many_pieces(tmp_path: Path) -> None:
    """More than fit into one answer."""
    path = tmp_path / "file"
    with path.open("wb") as stream:
        for number in range(600):
            stream.seek(number * 16384)
            stream.write(b"x" * 4096)
        stream.flush()
        os.fsync(stream.fileno())
    pieces = told(path)
    assert [piece.offset for piece in pieces] == [number * 16384 for number in range(600)]
    assert {piece.length for piece in pieces} == {4096}


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert told(path) == []
