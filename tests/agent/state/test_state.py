"""The file with the time of acceptance: complete or absent, and never the end of a diagnosis."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkgauge.agent.state.acceptance import Acceptance, of, read, write
from linkgauge.models.facts.records import Evidence, Flow, Observation

AT = 1.8e9
KEPT = Acceptance(
    at=AT,
    baseline=tuple(
        Observation(about=about, quantity="x", unit="count", value=0.3, at=AT, evidence=Evidence("a", "b"))
        for about in ("gpu0", Flow("copy", ("gpu0", "numa0"), 1 << 30, "pcie", (("gpu1", "numa0"),)))
    ),
)


def test_what_was_written_reads_back(tmp_path: Path) -> None:
    folder = str(tmp_path / "var/lib/linkgauge")
    assert read(folder) is None
    write(folder, Acceptance(at=1.0))
    write(folder, KEPT)
    assert read(folder) == KEPT
    assert sorted(os.listdir(folder)) == ["accepted-public.json", "accepted.json"]
    assert stat.S_IMODE(os.stat(f"{folder}/accepted.json").st_mode) == 0o640


def test_whose_it_is(tmp_path: Path) -> None:
    write(str(tmp_path / "var/lib/linkgauge"), KEPT)
    root, folder = str(tmp_path), str(tmp_path / "var/lib/linkgauge")
    assert of(root, (), None, AT + 1) == KEPT
    assert of("/", ("some.capture",), folder, AT) == KEPT
    assert of("/", ("some.capture",), None, AT) == Acceptance()
    assert of(root, (), str(tmp_path), AT) == Acceptance()


def test_one_of_the_future_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise no later log line would count."""
    write(str(tmp_path), KEPT)
    assert of("/", (), str(tmp_path), AT - 86400) == Acceptance()
    assert "later than the time of this snapshot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "damaged (Input data was truncated)"),
        ("[]", "damaged (Expected `object`, got `array`)"),
        ('{"version": 2, "at": "tomorrow"}', "it has version 2, and this program reads version 1"),
        ('{"version": 1, "at": 1e300}', "damaged (a time out of range)"),
        ('{"version": 1, "at": -1}', "damaged (a time out of range)"),
        ("[" * 100_000, "damaged ("),
    ],
)
def test_a_damaged_one_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, why: str) -> None:
    (tmp_path / "accepted.json").write_text(content)
    assert read(str(tmp_path)) is None
    assert why in capsys.readouterr().err


def test_what_is_no_file_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "accepted.json")
    assert read(str(tmp_path)) is None
    assert "not a plain file" in capsys.readouterr().err
    assert read("\0") is None
    assert read(str(tmp_path / "accepted.json")) is None  # a folder that is none holds nothing


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=50), st.integers(0, 400))
def test_any_bytes(tmp_path: Path, junk: bytes, place: int) -> None:
    write(str(tmp_path), KEPT)
    path = tmp_path / "accepted.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + junk + whole[place + len(junk) :])
    found = read(str(tmp_path))
    assert found is None or isinstance(found, Acceptance)


def test_what_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    write(str(tmp_path), KEPT)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(str(tmp_path), Acceptance(at=1.0))
    monkeypatch.undo()
    assert read(str(tmp_path)) == KEPT
    assert sorted(os.listdir(tmp_path)) == ["accepted-public.json", "accepted.json"]
