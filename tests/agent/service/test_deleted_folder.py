"""The state folder is deleted while the service runs: all files return, and the log says so."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service import checkpoint
from tests.support.nodes.daemon_nodes import Node

DELETED = "the folder or its lock was deleted: the service writes its files again"
FILES = {".lock", "history.sqlite3", "inventory.json", "last.json"}


@pytest.mark.parametrize("name", ["", ".lock", "history.sqlite3", "inventory.json"])
def test_what_was_deleted_returns(
    service: Callable[..., Node], tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folder = tmp_path / "state"
    with checkpoint.exclusive(str(folder)) as lock:
        one = service(folder)
        one.cycle(3)
        caplog.clear()
        if name:
            (folder / name).unlink()
        else:
            shutil.rmtree(folder)
        with caplog.at_level(logging.INFO, "linkgauge"):
            for _ in range(3):
                lock.renew()
                one.cycle()
        assert {*os.listdir(folder)} >= FILES
        with (
            pytest.raises(BadInput, match="another 'linkgauge serve' uses this folder"),
            checkpoint.exclusive(str(folder)),
        ):
            pass
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ([f"{folder}: {DELETED}"] if name in ("", ".lock") else [])


def test_a_folder_that_another_service_took(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "state"
    with checkpoint.exclusive(str(folder)) as lock:
        shutil.rmtree(folder)
        with checkpoint.exclusive(str(folder)):
            lock.renew()
            lock.renew()
        lock.renew()
        lock.renew()
    first, then = (record.getMessage() for record in caplog.records)
    assert "another 'linkgauge serve' uses this folder" in first
    assert then == f"{folder}: {DELETED}"
