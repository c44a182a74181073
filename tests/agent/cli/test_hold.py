"""The command hold: what it prints if it cannot write its request."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main


def test_a_missing_folder_is_not_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path / "none"))
    done = CliRunner().invoke(main, ["hold", "--for", "1s"])
    assert done.output == f"Error: {tmp_path}/none: No such file or directory\n"
