"""The pictures of the documentation are those that docs/pictures.py draws."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "docs/pictures.py"


def test_the_pictures_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("pictures", _FILE)
    assert spec
    assert spec.loader
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert pictures.main(["--check"]) == 0, capsys.readouterr().out
