"""A state folder without room: nobody must take the status of before for the present one."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.agent.state import status_file
from tests.support.nodes.daemon_nodes import Node


@contextmanager
def no_room() -> Iterator[None]:
    """No file can grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_status_that_cannot_be_replaced_is_deleted(
    service: Callable[..., Node], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = service(tmp_path)
    one.cycle(2)
    at = one.host.now()
    assert status_file.read(str(tmp_path), at, booted=0.0).verdict == "ok"
    with no_room():
        one.cycle(2)
        with pytest.raises(status_file.StatusUnknown, match="does not exist"):
            status_file.read(str(tmp_path), at, booted=0.0)
    done = CliRunner().invoke(main, ["status", "--state-dir", str(tmp_path)])
    assert done.exit_code == 3
    assert "gates cannot read the state of this node" in caplog.text
    one.cycle()
    assert status_file.read(str(tmp_path), one.host.now(), booted=0.0).verdict == "ok"
